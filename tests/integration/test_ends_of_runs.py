"""A run of a command ends well at a return or after some time, and is then complete."""

from pathlib import Path

import pytest

from harness.processes.training_process import checkpoint_steps, run, training_command, was_successful

BREAKING = """class Breaking:
    def __init__(self, folder):
        self.folder = folder

    def on_update(self, step, numbers):
        if numbers["version"] >= 3:
            raise ValueError("enough")

    def on_end(self, step, error):
        (self.folder / "ended.txt").write_text(error)
"""
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


@pytest.mark.parametrize(("name", "flags"), [("mono", []), ("train", []), ("train", ["--num-learners=2"])])
def test_a_callback_that_raises_ends_the_run_with_a_checkpoint_and_in_words(
    name: str, flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "breaking.py").write_text(BREAKING)
    words = training_command(name, tmp_path, ENDLESS, "--callback=breaking:Breaking", *flags)
    process = run(words, PYTHONPATH=str(tmp_path))
    assert process.returncode != 0
    assert "callback = 'breaking:Breaking': on_update: ValueError: enough (breaking.py, line 7)" in process.stderr
    assert (tmp_path / "run" / "ended.txt").read_text().startswith("CallbackError: callback = ")
    assert checkpoint_steps(tmp_path / "run")


def test_a_run_that_has_ended_goes_on_with_another_limit(tmp_path: Path) -> None:
    assert run(training_command("mono", tmp_path, ENDLESS, "--stop-at-return=12")).returncode == 0
    (before,) = checkpoint_steps(tmp_path / "run")
    assert run(training_command("mono", tmp_path, f"--total-steps={before + 500}")).returncode == 0
    assert checkpoint_steps(tmp_path / "run")[-1] >= before + 500
