"""Whole runs learn: with env-servers and without, a stated return is reached in a stated budget, recipe included."""

from pathlib import Path

import pytest

from tests.integration.training_process import command, rows, run

pytestmark = [pytest.mark.learning, pytest.mark.slow, pytest.mark.timeout(300)]

CATCH_STEPS = 100_000
CATCH_THRESHOLD = 0.8
"""Mean return of 100 games; a random player has about -0.6, a perfect one 1."""


@pytest.mark.parametrize("name", ["train", "mono"])
@pytest.mark.parametrize("memory", ["--no-use-lstm", "--use-lstm"])
def test_catch_is_learnt_within_its_budget(tmp_path: Path, name: str, memory: str) -> None:
    game = "--env=kubebeast_envserver.catch:Catch-v0"
    settings = [f"--total-steps={CATCH_STEPS}", "--compile=off", "--seed=1"]
    places = [f"--savedir={tmp_path}", "--xpid=catch", "--progress=none"]

    process = run(command(name, game, *settings, memory, *places))

    assert process.returncode == 0, process.stderr
    assert float(rows(tmp_path / "catch")[-1]["mean_episode_return"]) >= CATCH_THRESHOLD
