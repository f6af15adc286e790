"""Whole runs learn: with env-servers and without, a stated return is reached in a stated budget, recipe included."""

import json
import signal
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, command, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CATCH_STEPS = 100_000
CATCH_THRESHOLD = 0.8
"""Mean return of 100 games; a random player has about -0.6, a perfect one 1."""


@pytest.mark.parametrize("name", ["train", "mono"])
@pytest.mark.parametrize("memory", ["--no-use-lstm", "--use-lstm"])
def test_catch_is_learnt_within_its_budget(tmp_path: Path, name: str, memory: str) -> None:
    game = "--env=kubebeast_envserver.catch:Catch-v0"
    settings = [f"--total-steps={CATCH_STEPS}", "--compile=off", "--seed=1"]
    places = [f"--savedir={tmp_path}", "--xpid=catch", "--progress=json", "--log-interval-s=1"]

    with warm_start.Process(command(name, game, *settings, memory, *places), env=environment()) as process:
        is_learnt = any(shows_what_was_learnt(line) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(TIMEOUT_S)

    assert is_learnt, errors
    assert process.returncode == 0, errors


def shows_what_was_learnt(line: str) -> bool:
    """line: a snapshot of the run."""
    snapshot = json.loads(line)
    is_learnt: bool = snapshot["episodes"] >= 100 and snapshot["mean_episode_return"] >= CATCH_THRESHOLD
    return is_learnt
