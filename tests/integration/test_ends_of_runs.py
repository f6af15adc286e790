"""A run of a command ends well at a return or after some time, and is then complete."""

from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.training_process import (
    TIMEOUT_S,
    checkpoint_steps,
    environment,
    run,
    snapshots,
    training_command,
    was_successful,
)

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
        ("mono", ["--max-hours=0.01"], "it has trained for"),
    ],
)
def test_a_run_ends_early_and_once(name: str, flags: list[str], reason: str, tmp_path: Path) -> None:
    process = run(training_command(name, tmp_path, ENDLESS, *flags))
    assert process.returncode == 0, process.stderr
    assert f"the run ends: {reason}" in process.stderr
    assert was_successful(tmp_path / "run")
    last = snapshots(process.stdout)[-1]
    assert last["total_steps"] == last["step"], "alerts take it for finished"
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


def start(folder: Path, *flags: str) -> warm_start.Process:
    """Starts an endless training that saves often, without progress lines."""
    flags = (ENDLESS, "--progress=none", "--checkpoint-interval-minutes=0.005", *flags)
    return warm_start.Process(training_command("mono", folder, *flags), env=environment())


def wait_for_log(process: warm_start.Process, text: str) -> None:
    assert any(text in line for line in process.stderr), f"the process ended without {text!r}"


def test_a_signal_before_the_end_has_the_status_after_which_a_batch_system_starts_again(tmp_path: Path) -> None:
    with start(tmp_path, "--stop-status=143") as process:
        wait_for_log(process, "saved ")
        process.terminate()
        assert process.wait(TIMEOUT_S) == 143
    steps = checkpoint_steps(tmp_path / "run")[-1] + 100
    assert run(training_command("mono", tmp_path, f"--total-steps={steps}", "--stop-status=143")).returncode == 0


def test_a_process_may_wait_for_the_one_that_trains_its_run(tmp_path: Path) -> None:
    with start(tmp_path) as holder:
        wait_for_log(holder, "saved ")
        refused = run(training_command("mono", tmp_path, ENDLESS))
        assert refused.returncode == 2 and "trains this run; stop it" in refused.stderr
        with start(tmp_path, "--wait-for-run", "--stop-status=143") as stopped:
            wait_for_log(stopped, "waiting until it ends")
            stopped.terminate()
            assert stopped.wait(TIMEOUT_S) == 143
        with start(tmp_path, "--wait-for-run") as heir:
            wait_for_log(heir, "waiting until it ends")
            holder.terminate()
            assert holder.wait(TIMEOUT_S) == 0
            wait_for_log(heir, "resuming")
            heir.terminate()
            assert heir.wait(TIMEOUT_S) == 0
