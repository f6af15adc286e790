"""Beside `kubebeast train`, scripts/monitor finds the env-servers without configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ports import free_port
from harness.processes.training_process import environment, training_command
from tests.monitoring.prometheus import Prometheus

WAIT_S = 300.0


@pytest.fixture
def http_address(tmp_path: Path) -> Iterator[str]:
    """The address of a training with two env-servers that runs until the test is over."""
    address = f"127.0.0.1:{free_port()}"
    command = training_command("train", tmp_path, f"--http-address={address}", "--total-steps=1000000000")
    with (tmp_path / "train.log").open("wb") as log:
        training = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
    try:
        yield address
    finally:
        training.terminate()
        training.wait(WAIT_S)


def test_the_env_servers_of_a_training_are_found_and_read(http_address: str, tmp_path: Path) -> None:
    with Prometheus(tmp_path, learner=http_address) as prometheus:
        stepping = "rate(kubebeast_envserver_env_steps_total[5s]) > 0"
        samples = prometheus.eventually(
            WAIT_S,
            lambda: found if len(found := prometheus.query(stepping)) == 2 else None,
            "two env-servers are read, and they step",
        )

    assert {sample.labels["pod"] for sample in samples} == {"local-0", "local-1"}
    assert {(sample.labels["namespace"], sample.labels["job"]) for sample in samples} == {("local", "local")}
