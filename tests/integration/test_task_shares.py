"""Two tasks on one learner: real env-servers of environments whose speed differs tenfold, and the shares of both."""

import json
from pathlib import Path

import pytest

from harness.processes.training_process import TIMEOUT_S, command, rows, run, was_successful
from tests.integration.paced_tasks import FAST, FAST_RETURN, SLOW, SLOW_RETURN
from tests.integration.test_learner_command import Learner, env_server, learner

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)

SHARES = f"--task-shares={FAST}=1,{SLOW}=2"
TOLERANCE = 0.02
FLAGS = (SHARES, "--unroll-length=5", "--batch-size=4", "--normalise-values", "--task-input", "--reward-clipping=none")


def playing(env_id: str, running: Learner) -> tuple[str, ...]:
    return f"--env={env_id}", f"--address={running.address}", "--envs-per-stream=4"


def steps_of_tasks(running: Learner) -> dict[str, float]:
    metrics = running.metrics()
    return {task: metrics.get(f"kubebeast_task_steps_total/{task}", 0.0) for task in (FAST, SLOW)}


def test_tasks_of_very_different_speed_get_their_shares(tmp_path: Path) -> None:
    with (
        learner(tmp_path, *FLAGS) as running,
        env_server(*playing(SLOW, running)),
        env_server(*playing(FAST, running)),
    ):
        running.wait_for_snapshot(step=3000)
        metrics = running.metrics()
        assert running.terminate() == 0
    row = rows(tmp_path / "run")[-1]
    # Episodes are equally long: steps are shared as unrolls are.
    steps = {task: int(row[f"step/{task}"]) for task in (FAST, SLOW)}
    assert sum(steps.values()) == int(row["step"])
    assert steps[SLOW] / int(row["step"]) == pytest.approx(2 / 3, rel=TOLERANCE)
    assert steps[FAST] / int(row["step"]) == pytest.approx(1 / 3, rel=TOLERANCE)
    assert float(row[f"mean_episode_return/{FAST}"]) == FAST_RETURN
    assert float(row[f"mean_episode_return/{SLOW}"]) == SLOW_RETURN
    assert metrics[f"kubebeast_task_episode_return_mean/{SLOW}"] == SLOW_RETURN
    assert metrics["kubebeast_streams"] == 2


def test_share_of_a_task_without_env_servers_goes_to_the_other_until_it_is_back(tmp_path: Path) -> None:
    with learner(tmp_path, *FLAGS) as running, env_server(*playing(FAST, running)):
        running.wait_for_snapshot(step=1000)
        alone = steps_of_tasks(running)
        assert alone[SLOW] == 0
        with env_server(*playing(SLOW, running)):
            running.wait_for_snapshot(step=1000, streams=2)
            running.wait_for_snapshot(**{f"step/{SLOW}": 1})
            before = steps_of_tasks(running)
            running.wait_for_snapshot(**{f"step/{SLOW}": 1500})
            gained = {task: steps - before[task] for task, steps in steps_of_tasks(running).items()}
            assert gained[SLOW] / sum(gained.values()) == pytest.approx(2 / 3, rel=TOLERANCE), "and nothing is made up"
        step = running.wait_for_snapshot(streams=1)["step"]
        running.wait_for_snapshot(step=step + 1000)
        assert running.terminate() == 0
    assert was_successful(tmp_path / "run")


def test_the_train_command_trains_several_tasks_and_each_can_be_played(tmp_path: Path) -> None:
    trained = run(
        command(
            *("train", *FLAGS, "--num-servers=3", "--num-actors=6", "--total-steps=1200", "--compile=off"),
            *(f"--savedir={tmp_path}", "--xpid=run", "--log-interval-s=0.2", "--progress=json"),
        )
    )
    assert trained.returncode == 0, trained.stderr
    row = rows(tmp_path / "run")[-1]
    assert int(row[f"step/{SLOW}"]) / int(row["step"]) == pytest.approx(2 / 3, rel=3 * TOLERANCE)
    assert f"in {FAST}" in trained.stderr and f"in {SLOW}" in trained.stderr

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
