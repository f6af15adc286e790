"""A full volume costs a run rows and checkpoints for as long as it is full, and nothing else."""

import json
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.ports import free_port
from harness.processes.small_volume import SmallVolume
from harness.processes.training_process import (
    TIMEOUT_S,
    checkpoint_steps,
    command,
    environment,
    rows,
    training_command,
    was_successful,
)
from kubebeast_runs.log_table import read_log
from tests.integration.paced_tasks import SLOW

OFTEN = ("--model=mlp", "--recipe=none", "--total-steps=1000000000", "--checkpoint-interval-minutes=0.005")
Entry = dict[str, Any]


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[SmallVolume]:
    (tmp_path / "runs").mkdir()
    small = SmallVolume(tmp_path / "runs")
    try:
        small.__enter__()
    except PermissionError as error:
        pytest.skip(f"no volume can be mounted here: {error}")
    yield small
    small.__exit__(None, None, None)


@contextmanager
def started(volume: SmallVolume, words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Yields a process that writes log and progress lines, both JSON, to its stdout."""
    process = subprocess.Popen(
        [*volume.words, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: "subprocess.Popen[str]", is_it: Callable[[Entry], bool]) -> Entry:
    """Returns the next line for which `is_it` holds."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        entry: Entry = json.loads(line) if line.startswith("{") else {"message": line}
        if is_it(entry):
            return entry
    raise AssertionError("".join(seen[-30:]))


def says(text: str) -> Callable[[Entry], bool]:
    return lambda entry: text in entry["message"]


def end(process: "subprocess.Popen[str]") -> int:
    """Returns the exit status after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)
    return process.returncode


@pytest.mark.parametrize("name", ["train", "mono"])
def test_a_run_goes_on_without_rows_and_checkpoints_until_there_is_room_again(
    volume: SmallVolume, tmp_path: Path, name: str
) -> None:
    run = volume.inside / "run"
    metrics = f"127.0.0.1:{free_port()}"
    serving = [f"--http-address={metrics}"] if name == "train" else []
    with started(volume, training_command(name, tmp_path / "runs", *OFTEN, *serving)) as process:
        until(process, says("saved "))
        volume.fill()
        warning = until(process, says("is not written: No space left on device; the run goes on"))
        full = until(process, lambda entry: entry.get("checkpoint_failures", 0) >= 2)
        until(process, lambda entry: entry.get("step", 0) > full["step"] + 200)
        kept = checkpoint_steps(run)
        if serving:
            with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=TIMEOUT_S) as response:
                text = response.read().decode()
            failures = dict(re.findall(r'^kubebeast_run_write_failures_total{file="([^"]+)"} (\S+)', text, re.M))
            assert sum(map(float, failures.values())) > 0 and failures.keys() >= {"logs.csv", "tensorboard", "out.log"}
            assert re.search(r"^kubebeast_run_free_bytes 0\.0$", text, re.M)
        volume.relieve()
        assert "failed writes: " in until(process, says("can be written again"))["message"]
        until(process, says("saved "))
        assert end(process) == 0
    assert warning["level"] == "warning"
    assert kept and 0 < kept[-1] < checkpoint_steps(run)[-1] and was_successful(run)
    logged = rows(run)
    assert [int(row["_tick"]) for row in logged] == list(range(len(logged)))
    assert read_log(run).steps[-1] > full["step"]
    assert all(line.count(",") > 20 for line in (run / "logs.csv").read_text().splitlines())


@pytest.mark.parametrize(
    ("name", "gets_room"), [("learner", True), ("learner", False), ("train", True), ("mono", True), ("mono", False)]
)
def test_a_start_on_a_full_volume_waits_for_room_and_ends_when_asked(
    volume: SmallVolume, tmp_path: Path, name: str, gets_room: bool
) -> None:
    savedir = tmp_path / "runs"
    port = free_port()
    flags = ["--address=127.0.0.1:0", f"--http-address=127.0.0.1:{port}", f"--savedir={savedir}", "--xpid=run"]
    words = command(name, *flags) if name == "learner" else training_command(name, savedir, *OFTEN)
    volume.fill()
    with started(volume, words) as process:
        until(process, says("has no room for a checkpoint of 1.0 MB: No space left on device; waiting until it has"))
        if name == "learner":
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_S) as response:
                assert response.status == 200
        if gets_room:
            volume.relieve()
            until(process, says("has room again"))
            if name != "learner":
                until(process, says("saved "))
        assert end(process) == 0
    if not gets_room:
        assert not (volume.inside / "run").exists()


def test_the_checkpoint_at_the_end_of_a_run_waits_for_room(volume: SmallVolume, tmp_path: Path) -> None:
    flags = ("--model=mlp", "--recipe=none", "--total-steps=4000", "--checkpoint-interval-minutes=60")
    words = training_command("mono", tmp_path / "runs", *flags, f"--env={SLOW}")  # the end comes after the filling
    with started(volume, words) as process:
        until(process, lambda entry: entry.get("step", 0) > 0)
        volume.fill()
        until(process, says("has no room for a checkpoint"))
        volume.relieve()
        until(process, says("saved "))
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
    (step,) = checkpoint_steps(volume.inside / "run")
    assert step >= 4000


def test_an_environment_that_prints_is_no_failure_on_a_full_volume(volume: SmallVolume, tmp_path: Path) -> None:
    (tmp_path / "talkative.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "class Talkative(CartPoleEnv):\n"
        "    def step(self, action):\n"
        "        print('a line of the environment', flush=True)\n"
        "        return super().step(action)\n"
        "gymnasium.register('Talkative-v0', Talkative)\n"
    )
    words = training_command("mono", tmp_path / "runs", *OFTEN, "--env=talkative:Talkative-v0")
    with started(volume, ["env", f"PYTHONPATH={tmp_path}", *words]) as process:
        until(process, lambda entry: entry.get("step", 0) > 0)
        volume.fill()
        full = until(process, lambda entry: entry.get("checkpoint_failures", 0) >= 1)
        later = until(process, lambda entry: entry.get("step", 0) > full["step"] + 400)
        assert later["actor_restarts"] == 0
        volume.relieve()
        assert end(process) == 0
    log = (volume.inside / "run" / "actors.log").read_text()
    assert "a line of the environment" in log and "No space left" not in log
    shutil.rmtree(volume.inside / "run")
