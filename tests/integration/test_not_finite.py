"""If environments send numbers that cannot be computed with, only finite values are learned and saved."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.processes.training_process import checkpoint_steps, command, run, training_command
from kubebeast_learner.models.finite import not_finite_in

both = pytest.mark.parametrize("name", ["train", "mono"])


def train(name: str, savedir: Path, *flags: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    env = ["--env=tests.integration.sentinels:Sentinel-v0", f"--env-kwargs={json.dumps(kwargs)}", "--recipe=none"]
    return run(training_command(name, savedir, *env, "--checkpoint-interval-minutes=0.005", *flags))


def states(folder: Path) -> list[Any]:
    return [torch.load(path, weights_only=True) for path in sorted(folder.glob("checkpoint-*.pt"))]


@pytest.mark.parametrize(("name", "value"), [("train", 3.4e38), ("mono", 1e20)])
def test_normalised_observations_leave_out_what_is_too_large_and_say_so_once(
    name: str, value: float, tmp_path: Path
) -> None:
    flags = ["--normalise-observations", "--use-lstm", "--bounded-actions=tanh"]
    process = train(name, tmp_path, "--total-steps=2000", *flags, value=value)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("are no part of the running statistics") == 1
    assert "update skipped" not in process.stderr
    found = states(tmp_path / "run")
    assert found and all(not_finite_in(state["learner"]) == "" for state in found)
    assert found[-1]["learner"]["model"]["normaliser.leaves.0.left_out"].tolist()[:2] == [0.0, 0.0]
    assert found[-1]["learner"]["model"]["normaliser.leaves.0.left_out"][2] > 0
    assert run(command("eval", f"--savedir={tmp_path}", "--xpid=run", "--episodes=1")).returncode == 0


@pytest.mark.parametrize(("name", "use_lstm"), [("train", False), ("train", True), ("mono", True)])
def test_observations_too_large_for_the_weights_end_a_run_that_names_them(
    name: str, use_lstm: bool, tmp_path: Path
) -> None:
    lstm = ["--use-lstm"] * use_lstm
    process = train(name, tmp_path, "--total-steps=100000", "--bounded-actions=tanh", *lstm, value=3.4e38, every=5)
    assert process.returncode == 1
    assert "10 updates in a row" in process.stderr
    assert "the largest number in the observation" in process.stderr and "is 3.4e+38" in process.stderr
    assert all(not_finite_in(state["learner"]) == "" for state in states(tmp_path / "run"))


@both
def test_rewards_too_large_to_learn_from_end_a_run_that_names_them(name: str, tmp_path: Path) -> None:
    flags = ["--reward-clipping=none", "--normalise-values"]
    process = train(name, tmp_path, "--total-steps=100000", *flags, reward=1e30, every=5)
    assert process.returncode == 1
    assert "the largest reward is 1e+30" in process.stderr
    assert all(not_finite_in(state["learner"]) == "" for state in states(tmp_path / "run"))


@both
def test_the_first_clipped_reward_is_logged_once_with_its_size(name: str, tmp_path: Path) -> None:
    process = train(name, tmp_path, "--total-steps=2000", reward=-100.0)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("a reward of -100 counts as -1 in the loss") == 1


def test_a_run_whose_newest_checkpoint_is_not_finite_goes_back_and_on(tmp_path: Path) -> None:
    """An older version may have left such a checkpoint."""
    folder = tmp_path / "run"
    assert train("mono", tmp_path, "--total-steps=600", "--normalise-observations").returncode == 0
    (step, *_) = checkpoint_steps(folder)
    for path in sorted(folder.glob("checkpoint-*.pt"))[1:]:
        path.unlink()
    (path,) = folder.glob("checkpoint-*.pt")
    state = torch.load(path, weights_only=True)
    state["learner"]["model"]["normaliser.leaves.0.mean"].fill_(torch.nan)
    del state["learner"]["made_not_finite"]
    for later in (100_000, 200_000, 300_000):
        torch.save(state | {"step": later}, folder / f"checkpoint-{later:012d}.pt")
    process = train("mono", tmp_path, "--total-steps=1200", "--normalise-observations")
    assert process.returncode == 0, process.stderr
    assert f"at step {step} of 1200" in process.stderr
    assert process.stderr.count("is not finite: learner.model.normaliser.leaves.0.mean holds nan; it stays") == 3
    steps = checkpoint_steps(folder)
    assert steps[-3:] == [100_000, 200_000, 300_000] and 1200 <= steps[-4] < 1240
