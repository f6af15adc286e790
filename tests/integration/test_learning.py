"""Catch is learned with its recipe: within the budget, and by complete runs with env-servers and without."""

import json
import signal
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, command, environment
from kubebeast_learner.config.recipes import choose_recipe
from tests.integration.stepwise_training import steps_until

pytestmark = pytest.mark.slow

CATCH = "kubebeast_envserver.catch:Catch-v0"
LEARNT = 0.8
"""Mean return of 100 games; a random player has about -0.6, a perfect one 1."""
ABOVE_CHANCE = 0.0
"""Mean return of 100 games: seven standard deviations more than a random player's."""


@pytest.mark.parametrize("use_lstm", [False, True])
def test_catch_is_learnt_within_its_budget(use_lstm: bool) -> None:
    """Trains with the same numbers in every run: asynchronous runs differ, and would need the budget of the worst."""
    recipe = choose_recipe("Catch", CATCH)
    assert recipe is not None

    steps = steps_until(LEARNT, CATCH, {**recipe.settings, "use_lstm": use_lstm})

    assert steps is not None, "the recipe's total_steps are not enough"


@pytest.mark.parametrize("name", ["train", "mono"])
@pytest.mark.parametrize("memory", ["--no-use-lstm", "--use-lstm"])
def test_the_actors_of_a_whole_run_play_by_what_was_learnt(tmp_path: Path, name: str, memory: str) -> None:
    settings = ["--recipe=Catch", "--compile=off", "--seed=1", memory]
    places = [f"--savedir={tmp_path}", "--xpid=catch", "--progress=json", "--log-interval-s=1"]

    with warm_start.Process(command(name, f"--env={CATCH}", *settings, *places), env=environment()) as process:
        is_learnt = any(shows_what_was_learnt(line) for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(TIMEOUT_S)

    assert is_learnt, errors
    assert process.returncode == 0, errors


def shows_what_was_learnt(line: str) -> bool:
    """line: a snapshot of the run."""
    snapshot = json.loads(line)
    is_learnt: bool = snapshot["episodes"] >= 100 and snapshot["mean_episode_return"] >= ABOVE_CHANCE
    return is_learnt
