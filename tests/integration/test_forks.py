"""`--fork-from` lets a new run go on with the training of another."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.processes.training_process import TRAININGS, command, run, training_command


def newest_checkpoint(folder: Path) -> dict[str, Any]:
    path = sorted(folder.glob("checkpoint-*.pt"))[-1]
    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


def first_step(folder: Path) -> int:
    with open(folder / "logs.csv", newline="") as file:
        return int(next(csv.DictReader(file))["step"])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has trained for 500 steps."""
    savedir = tmp_path_factory.mktemp("runs")
    process = run(training_command("mono", savedir, "--total-steps=500"))
    assert process.returncode == 0, process.stderr
    return savedir / "run"


@pytest.mark.parametrize("name", ["mono", "train"])
def test_a_fork_has_weights_optimizer_and_steps_and_may_have_another_seed(
    name: str, first: Path, tmp_path: Path
) -> None:
    flags = [f"--fork-from={first}", "--seed=7", "--learning-rate=1e-30", "--total-steps=700"]
    process = run(training_command(name, tmp_path, *flags))
    assert process.returncode == 0, process.stderr

    before, after = newest_checkpoint(first), newest_checkpoint(tmp_path / "run")
    assert f"resuming {first}/checkpoint-" in process.stderr
    assert after["step"] >= 700 and first_step(tmp_path / "run") >= before["step"]
    assert after["learner"]["version"] > before["learner"]["version"]
    weights = before["learner"]["model"]
    assert all(torch.equal(after["learner"]["model"][key], weights[key]) for key in weights if "moments" not in key)
    assert after["config"]["seed"] == 7


def test_a_fork_that_is_started_again_resumes_itself(first: Path, tmp_path: Path) -> None:
    flags = [f"--fork-from={first}", "--seed=7"]
    assert run(training_command("mono", tmp_path, *flags, "--total-steps=600")).returncode == 0
    process = run(training_command("mono", tmp_path, *flags, "--total-steps=700"))

    assert process.returncode == 0, process.stderr
    assert f"resuming {tmp_path}/run/checkpoint-" in process.stderr


def test_a_setting_that_a_resume_keeps_is_kept_by_a_fork(first: Path, tmp_path: Path) -> None:
    process = run(training_command("mono", tmp_path, f"--fork-from={first}", "--hidden-sizes", "8"))

    assert process.returncode == 2
    assert "hidden_sizes" in process.stderr and "which a resumed run keeps" in process.stderr


@pytest.mark.parametrize("name", TRAININGS)
def test_a_fork_of_nothing_ends_before_it_trains(name: str, tmp_path: Path) -> None:
    process = run(command(name, f"--savedir={tmp_path}", "--xpid=later", "--fork-from=nobody"))

    assert process.returncode == 2
    assert "fork_from = 'nobody': there is no meta.json or weights.safetensors in" in process.stderr


def test_weights_and_a_whole_training_exclude_each_other(tmp_path: Path) -> None:
    process = run(command("mono", f"--savedir={tmp_path}", "--fork-from=a", "--init-from=b"))

    assert process.returncode == 2
    assert "fork_from = 'a': init_from is given as well" in process.stderr
