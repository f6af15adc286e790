"""`kubebeast train` and `kubebeast mono` survive environments that fail, one by one and all at once."""

from pathlib import Path

import pytest

from harness.chaos import serial_env, serials, witness
from harness.processes.learner_process import LearnerProcess
from tests.system import environments, peers
from tests.system.environments import FAULTS, MEDLEY, NEVER_MADE, SCRIPTED
from tests.system.halves import TRAINING_FLAGS

PROCESSES = {"train": "--num-servers=1", "mono": "--num-actor-processes=1"}

both = pytest.mark.parametrize("command", PROCESSES)


@pytest.mark.parametrize("frames", [1, 4], ids=["whole rows", "frame stacks"])
@both
def test_a_training_whose_environments_fail_together_goes_on(tmp_path: Path, command: str, frames: int) -> None:
    run = local_training(tmp_path, command, {peers.FRAME_STACK: str(frames)}, f"--env={MEDLEY}", len(FAULTS))
    with run:
        run.wait_until(lambda _: environments.all_are_back(tmp_path, len(FAULTS)))
        assert run.terminate() == 0
    assert_books_are_right(run)


@pytest.mark.parametrize(
    "fault", ["step raises", "killed for memory", "segmentation fault", "step hangs", "reset hangs"]
)
@both
def test_a_training_whose_only_environment_fails_goes_on(tmp_path: Path, command: str, fault: str) -> None:
    run = local_training(tmp_path, command, {environments.FAULT: fault}, f"--env={SCRIPTED}", 1, "--env-timeout-s=5")
    with run:
        run.wait_until(lambda _: environments.all_are_back(tmp_path, 1))
        assert run.terminate() == 0
    assert_books_are_right(run)


@pytest.mark.parametrize(
    ("env", "says"),
    [(NEVER_MADE, "no licence"), ("tests.system.nowhere:Scripted-v0", "nowhere")],
    ids=["constructor raises", "no such module"],
)
@both
def test_a_training_whose_environment_cannot_be_made_says_why_and_ends(
    tmp_path: Path, command: str, env: str, says: str
) -> None:
    with local_training(tmp_path, command, {}, f"--env={env}", 1) as run:
        assert run.wait() in (1, 2)
    assert len(run.errors()) == 1 and says in run.log() and "Traceback" not in run.log()


def local_training(
    folder: Path, command: str, variables: dict[str, str], env: str, num_actors: int, *more: str
) -> LearnerProcess:
    variables = {environments.FOLDER: str(folder), **variables}
    flags = (*TRAINING_FLAGS, PROCESSES[command], env, f"--num-actors={num_actors}", *more)
    return LearnerProcess(folder, *flags, command=command, variables=variables, warm=True)


def assert_books_are_right(run: LearnerProcess) -> None:
    """Asserts that no error was logged, and that the learner's transitions came once and whole."""
    decisions = int(serial_env.accounts(run.folder)["decisions"].sum())
    tally = serials.tally(witness.testimony(run.folder))
    assert run.errors() == []
    assert (tally.torn, tally.duplicated, tally.unreadable) == (0, 0, 0)
    assert 0 < tally.delivered <= decisions
