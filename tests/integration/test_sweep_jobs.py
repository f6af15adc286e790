"""The runs of a sweep as Jobs: they share a fleet, and outlive the sweep's process and the API server."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.processes.broker_process import BrokerProcess, playing
from harness.processes.env_server import EnvServer
from tests.integration.fleet_api_server import write_kubeconfig
from tests.integration.jobs_api_server import JobsApi, jobs_api

SETTINGS = {
    "env": "CartPole-v1",
    "total_steps": 1500,
    "unroll_length": 10,
    "batch_size": 2,
    "learner_threads": 1,
    "compile": "off",
    "log_interval_s": 0.2,
}
TEMPLATE = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "tiny", "labels": {"team": "rl"}},
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "rl"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "learner", "image": "learner", "args": []}]},
        }
    },
}
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path) as process:
        yield process


@pytest.fixture
def api(tmp_path: Path) -> Iterator[JobsApi]:
    with jobs_api(tmp_path) as server:
        yield server
        server.end_all()


@pytest.fixture
def start(api: JobsApi, broker: BrokerProcess, tmp_path: Path) -> Iterator[Start]:
    """Returns a function that starts a sweep, with other settings if given."""
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(TEMPLATE))
    variables = {**os.environ, "KUBECONFIG": str(write_kubeconfig(tmp_path, api.address))}
    started: list[subprocess.Popen[str]] = []

    def start_sweep(*flags: str, **settings: Any) -> "subprocess.Popen[str]":
        file = tmp_path / "tiny.yaml"
        content = {
            "command": "learner",
            "recipe": "torchbeast",
            "settings": {**SETTINGS, "address": "127.0.0.1:0", **settings},
        }
        content |= {"parameters": {"learning_rate": [0.001, 0.002]}, "search": "grid", "pruner": "none"}
        file.write_text(yaml.safe_dump(content))
        words = [sys.executable, "-m", "kubebeast_learner", "sweep", str(file), f"--savedir={tmp_path}"]
        words += ["--progress=none", f"--job-template={tmp_path / 'job.yaml'}", f"--broker={broker.address}"]
        process = subprocess.Popen(
            [*words, "--parallel=2", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
        )
        started.append(process)
        return process

    yield start_sweep
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def fleet(broker: BrokerProcess, folder: Path, num_streams: int = 4) -> EnvServer:
    flags = (f"--num-streams={num_streams}",)
    return EnvServer(0, f"broker:{broker.address}", folder, *flags, env="CartPole-v1")


def trials(folder: Path) -> list[dict[str, str]]:
    with open(folder / "tiny" / "trials.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_runs_are_jobs_that_share_a_fleet(api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path) -> None:
    with fleet(broker, tmp_path):
        _, log = start("--job-owner=sweep-a1/7d0a").communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    assert sorted(api.names()) == ["tiny-000-seed1", "tiny-001-seed1"]
    job = min(api.created, key=lambda content: str(content["metadata"]["name"]))
    assert job["metadata"]["labels"] == {"team": "rl", "kubebeast/sweep": "tiny", "kubebeast/run": "000-seed1"}
    assert job["spec"]["template"]["metadata"]["labels"] == job["metadata"]["labels"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep-a1", "uid": "7d0a"}
    assert job["metadata"]["ownerReferences"] == [owner]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143)])
def test_jobs_with_an_owner_outlive_the_process_of_the_sweep(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    flags = ("--job-owner=sweep-a1/7d0a", "--stop-status=143")
    sweep = start(*flags)
    broker.wait_until(lambda fleet: playing(fleet) == {"000-seed1": 0, "001-seed1": 0})
    sweep.send_signal(number)
    sweep.communicate()
    assert sweep.returncode == status
    assert [job.process.poll() for job in api.live()] == [None, None]
    sweep = start(*flags)
    with fleet(broker, tmp_path):
        _, log = sweep.communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    assert sorted(api.names()) == ["tiny-000-seed1", "tiny-001-seed1"]


def test_jobs_of_a_predecessor_with_other_arguments_are_replaced(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path
) -> None:
    owner = "--job-owner=sweep-a1/7d0a"
    sweep = start(owner)
    broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
    sweep.kill()
    sweep.communicate()
    (tmp_path / "second").mkdir()
    with BrokerProcess(tmp_path / "second") as second, fleet(second, tmp_path):
        _, log = start(owner, f"--broker={second.address}").communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    assert sorted(api.names()) == ["tiny-000-seed1"] * 2 + ["tiny-001-seed1"] * 2


def test_a_sweep_with_an_owner_waits_for_its_predecessor_and_replaces_the_jobs_of_the_other_owner(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path
) -> None:
    first = start("--job-owner=sweep-a1/7d0a", "--stop-status=143")
    broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
    second = start("--job-owner=sweep-b2/9c1f", "--stop-status=143")
    assert second.stderr is not None
    assert any("runs this sweep; waiting until it ends" in line for line in second.stderr)
    first.send_signal(signal.SIGTERM)
    first.communicate()
    with fleet(broker, tmp_path):
        _, log = second.communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    owners = [content["metadata"]["ownerReferences"][0]["uid"] for content in api.created]
    assert owners == ["7d0a"] * 2 + ["9c1f"] * 2


def test_a_signal_ends_the_wait_for_a_predecessor(broker: BrokerProcess, start: Start) -> None:
    start("--job-owner=sweep-a1/7d0a")
    broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
    second = start("--job-owner=sweep-b2/9c1f", "--stop-status=143")
    assert second.stderr is not None
    assert any("waiting until it ends" in line for line in second.stderr)
    second.send_signal(signal.SIGTERM)
    second.communicate()

    assert second.returncode == 143


def test_the_end_of_a_sweep_is_that_of_its_jobs_and_the_next_one_resumes_them(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path
) -> None:
    with fleet(broker, tmp_path):
        sweep = start(total_steps=4000)
        broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
        sweep.send_signal(signal.SIGTERM)
        _, log = sweep.communicate()
        assert sweep.returncode == 0, log
        jobs = list(api.jobs.values())
        assert [job.process.wait(60) for job in jobs] == [143, 143]
        _, log = start(total_steps=4000).communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    assert sorted(api.names()) == ["tiny-000-seed1"] * 2 + ["tiny-001-seed1"] * 2


def test_a_job_that_somebody_deletes_begins_again(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path
) -> None:
    sweep = start()
    broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
    api.delete("tiny-000-seed1")
    with fleet(broker, tmp_path):
        _, log = sweep.communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log
    assert sorted(api.names()) == ["tiny-000-seed1", "tiny-000-seed1", "tiny-001-seed1"]


def test_a_sweep_waits_for_an_api_server_that_does_not_answer(
    api: JobsApi, broker: BrokerProcess, start: Start, tmp_path: Path
) -> None:
    api.failing = True
    sweep = start()
    assert sweep.stderr is not None
    for line in sweep.stderr:
        if "waits: the API server answers 503" in line:
            break
    api.failing = False
    broker.wait_until(lambda fleet: set(playing(fleet)) == {"000-seed1", "001-seed1"})
    before, api.failing = api.num_refused, True
    for line in sweep.stderr:
        if "the state of the runs is unknown" in line:
            break
    assert api.num_refused > before
    api.failing = False
    with fleet(broker, tmp_path):
        _, log = sweep.communicate()

    assert [row["state"] for row in trials(tmp_path)] == ["done"] * 2, log


def test_a_run_that_fails_is_shown_with_the_end_of_its_log(start: Start, tmp_path: Path) -> None:
    sweep = start(unroll_lengt=20)
    _, log = sweep.communicate()

    assert sweep.returncode == 2
    assert "did you mean unroll_length?" in log
