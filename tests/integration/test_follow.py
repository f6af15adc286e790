"""`kubebeast eval --follow` follows a real training: from before its start, through a stop and a resume, to its end."""

import contextlib
import json
import re
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from harness.processes import warm_start
from harness.processes.training_process import (
    TIMEOUT_S,
    checkpoint_steps,
    command,
    environment,
    run,
    training_command,
)
from kubebeast_runs.scores import read_scores
from kubebeast_runs.storage.local import LocalStorage
from tests.integration.littering_env import LITTER

MANY_STEPS = 1_000_000
TRAINING = ["--model=mlp", "--recipe=none"]
FLAGS = ["--follow", "--xpid=run", "--episodes=2", "--http-address=127.0.0.1:0"]


@contextlib.contextmanager
def follower(savedir: Path) -> Iterator[warm_start.Process]:
    with warm_start.Process(command("eval", f"--savedir={savedir}", *FLAGS), env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def train_and_stop(savedir: Path) -> int:
    """Trains for a moment; returns the step of the one checkpoint that is left."""
    words = training_command("mono", savedir, *TRAINING, f"--total-steps={MANY_STEPS}")
    with warm_start.Process(words, env=environment()) as learner:
        next(line for line in learner.stdout if json.loads(line)["step"])
        learner.terminate()
        learner.communicate(TIMEOUT_S)
    (step,) = checkpoint_steps(savedir / "run")
    return step


def next_line(errors: IO[str], pattern: str) -> dict[str, Any]:
    """Returns the next line of a log with a message that has the pattern."""
    for line in errors:
        entry: dict[str, Any] = json.loads(line)
        if re.search(pattern, entry["message"]):
            return entry
    raise AssertionError(f"no {pattern}")


def metrics(port: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_S) as answer:
        text: str = answer.read().decode()
        return text


def test_a_run_is_followed_from_before_its_start_to_its_end(tmp_path: Path) -> None:
    with follower(tmp_path) as process:
        port = next_line(process.stderr, "serving HTTP on port").pop("message").split()[-1]
        next_line(process.stderr, "waiting for the run")
        stopped_at = train_and_stop(tmp_path)
        scored = next_line(process.stderr, "mean return")
        assert (scored["step"], scored["episodes"], scored["run_id"]) == (stopped_at, 2, "run")
        assert f"kubebeast_eval_step {float(stopped_at)}" in metrics(port)
        next_line(process.stderr, f"the training has stopped at step {stopped_at} of {MANY_STEPS}; waiting")

        total_steps = stopped_at + 200
        resumed = run(training_command("mono", tmp_path, *TRAINING, f"--total-steps={total_steps}"))
        assert resumed.returncode == 0, resumed.stderr
        assert process.wait(TIMEOUT_S) == 0
    scores = read_scores(LocalStorage(tmp_path / "run"))
    assert scores.steps.tolist() == checkpoint_steps(tmp_path / "run") == [stopped_at, scores.steps[-1]]
    assert scores.steps[-1] >= total_steps
    again = run(command("eval", f"--savedir={tmp_path}", *FLAGS))
    num_lines = (tmp_path / "run" / "eval.csv").read_text().count("\n")
    assert (again.returncode, num_lines) == (0, 3), "nothing is played twice"


def child_names(process: psutil.Process) -> list[str]:
    """Returns the programs of the children, also of those that have ended and were not waited for."""
    names = []
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            names.append(child.name())
    return names


def test_processes_that_environments_leave_behind_do_not_pile_up(tmp_path: Path) -> None:
    env = "--env=tests.integration.littering_env:Littering-v0"
    trained = run(training_command("mono", tmp_path, *TRAINING, env, "--total-steps=200"))
    assert trained.returncode == 0, trained.stderr
    with warm_start.Process(
        command("eval", f"--savedir={tmp_path}", *FLAGS, env, "--linger"), env=environment()
    ) as process:
        next_line(process.stderr, "mean return")
        evaluation = psutil.Process(process.pid)
        while LITTER in child_names(evaluation):
            assert evaluation.status() != psutil.STATUS_ZOMBIE
        process.kill()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, {130, -signal.SIGINT}), (signal.SIGTERM, {0}), (signal.SIGHUP, {0})]
)
def test_a_signal_ends_the_wait_for_a_run(number: signal.Signals, status: set[int], tmp_path: Path) -> None:
    with follower(tmp_path) as process:
        next_line(process.stderr, "waiting for the run")
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) in status
    assert list(tmp_path.iterdir()) == [], "a name that was misspelt leaves no folder"
