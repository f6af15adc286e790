"""Two tasks on one learner get their shares, although the env-servers of one are ten times as fast."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.processes.learner_process import LearnerProcess
from harness.processes.training_process import command, rows, run, was_successful
from tests.integration.paced_tasks import FAST, FAST_RETURN, SLOW, SLOW_RETURN
from tests.integration.test_learner_command import Learner, env_server, learner

SHARES = f"--task-shares={FAST}=1,{SLOW}=2"
UNROLL_LENGTH = 5
MOST_ASTRAY = 3 * UNROLL_LENGTH
"""Steps by which a task's part of any stretch may differ from its share: a turn for each of the two tasks, and the
difference between an unroll that ends with an episode and one that does not.
"""
FLAGS = [SHARES, f"--unroll-length={UNROLL_LENGTH}", "--batch-size=4", "--normalise-values", "--task-input"]
FLAGS += ["--reward-clipping=none"]


def playing(env_id: str, running: Learner) -> tuple[str, ...]:
    return f"--env={env_id}", f"--address={running.address}", "--envs-per-stream=4"


def steps_of_tasks(values: Mapping[str, Any]) -> dict[str, int]:
    """values: fields of a progress line, or of a row of logs.csv."""
    steps = {task: int(values[f"step/{task}"]) for task in (FAST, SLOW)}
    assert sum(steps.values()) == int(values["step"])
    return steps


def assert_is_shared(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Asserts the shares between two moments, if both tasks have env-servers throughout; values as in
    steps_of_tasks.
    """
    gained = {task: steps - steps_of_tasks(before)[task] for task, steps in steps_of_tasks(after).items()}
    total = sum(gained.values())
    assert gained[SLOW] == pytest.approx(total * 2 / 3, abs=MOST_ASTRAY), gained
    assert gained[FAST] == pytest.approx(total * 1 / 3, abs=MOST_ASTRAY), gained


def test_tasks_of_very_different_speed_get_their_shares(tmp_path: Path) -> None:
    with (
        learner(tmp_path, *FLAGS) as running,
        env_server(*playing(SLOW, running)),
        env_server(*playing(FAST, running)),
    ):
        together = running.wait_for_snapshot(**{f"step/{SLOW}": 1})  # the fast one may have played alone before
        assert_is_shared(together, running.wait_for_snapshot(step=together["step"] + 3000))
        metrics = running.metrics()
        assert running.terminate() == 0
    row = rows(tmp_path / "run")[-1]
    steps_of_tasks(row)
    assert float(row[f"mean_episode_return/{FAST}"]) == FAST_RETURN
    assert float(row[f"mean_episode_return/{SLOW}"]) == SLOW_RETURN
    assert metrics[f"kubebeast_task_episode_return_mean/{SLOW}"] == SLOW_RETURN
    assert metrics["kubebeast_streams"] == 2


def test_share_of_a_task_without_env_servers_goes_to_the_other_until_it_is_back(tmp_path: Path) -> None:
    with learner(tmp_path, *FLAGS) as running, env_server(*playing(FAST, running)):
        alone = running.wait_for_snapshot(step=1000)
        assert steps_of_tasks(alone)[SLOW] == 0
        with env_server(*playing(SLOW, running)):
            together = running.wait_for_snapshot(**{f"step/{SLOW}": 1})
            # Steps missed without env-servers are not made up for.
            assert_is_shared(together, running.wait_for_snapshot(**{f"step/{SLOW}": 1500}))
        step = running.wait_for_snapshot(streams=1)["step"]
        running.wait_for_snapshot(step=step + 1000)
        assert running.terminate() == 0
    assert was_successful(tmp_path / "run")


def test_the_train_command_trains_several_tasks_and_each_can_be_played(tmp_path: Path) -> None:
    fleet = ("--num-servers=3", "--num-actors=6", "--compile=off", "--log-interval-s=0.2")
    with LearnerProcess(tmp_path, *FLAGS, *fleet, command="train", warm=True) as training:
        together = training.wait_until(lambda values: values[f"step/{SLOW}"] > 0).values
        enough = together["step"] + 1000
        assert_is_shared(together, training.wait_until(lambda values: values["step"] >= enough).values)
        assert training.terminate() == 0
    assert f"in {FAST}" in training.log() and f"in {SLOW}" in training.log()

    run_flags = (f"--savedir={tmp_path}", "--xpid=run")
    for flags, env_id, score in (((), FAST, FAST_RETURN), ((f"--env={SLOW}",), SLOW, SLOW_RETURN)):
        played = run(command("eval", *run_flags, "--episodes=2", "--json", *flags))
        assert played.returncode == 0, played.stderr
        result = json.loads(played.stdout)
        assert (result["env"], result["mean_return"], result["notes"]) == (env_id, score, [])
    refused = run(command("eval", *run_flags, "--env=CartPole-v1"))
    assert refused.returncode == 2 and f"was trained on the tasks {FAST}, {SLOW}" in refused.stderr

    out = tmp_path / "slow.pt2"
    exported = run(command("export", *run_flags, f"--env={SLOW}", f"--out={out}"))
    assert exported.returncode == 0, exported.stderr
    assert json.loads(out.with_suffix(".json").read_text())["env"] == SLOW
