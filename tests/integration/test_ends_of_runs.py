"""A run of a command ends well at a return or after some time, and is then complete."""

from pathlib import Path

import pytest

from harness.processes.training_process import checkpoint_steps, run, training_command, was_successful

ENDLESS = "--total-steps=100000000"


@pytest.mark.parametrize(
    ("name", "flags", "reason"),
    [
        ("mono", ["--stop-at-return=12"], "the mean return of the newest 100 episodes is"),
        ("train", ["--stop-at-return=12"], "the mean return of the newest 100 episodes is"),
        ("train", ["--stop-at-return=12", "--num-learners=2"], "the mean return of the newest 100 episodes is"),
        ("mono", ["--max-hours=0.005"], "it has trained for"),
    ],
)
def test_a_run_ends_early_and_once(name: str, flags: list[str], reason: str, tmp_path: Path) -> None:
    process = run(training_command(name, tmp_path, ENDLESS, *flags))
    assert process.returncode == 0, process.stderr
    assert f"the run ends: {reason}" in process.stderr
    assert was_successful(tmp_path / "run")
    steps = checkpoint_steps(tmp_path / "run")
    again = run(training_command(name, tmp_path, ENDLESS, *flags))
    assert again.returncode == 0, again.stderr
    assert f"nothing is left of the run: {reason}" in again.stderr
    assert checkpoint_steps(tmp_path / "run") == steps


def test_a_run_that_has_ended_goes_on_with_another_limit(tmp_path: Path) -> None:
    assert run(training_command("mono", tmp_path, ENDLESS, "--stop-at-return=12")).returncode == 0
    (before,) = checkpoint_steps(tmp_path / "run")
    assert run(training_command("mono", tmp_path, f"--total-steps={before + 500}")).returncode == 0
    assert checkpoint_steps(tmp_path / "run")[-1] >= before + 500
