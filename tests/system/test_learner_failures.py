"""A run survives a learner that is killed, stopped, short of disk space, or unable to compute its loss."""

import re
from pathlib import Path

import psutil
import pytest

from harness.chaos import serials, witness
from harness.processes.training_process import checkpoint_steps
from tests.system import losses
from tests.system.halves import Halves

OFTEN = "--checkpoint-interval-minutes=0.005"


def steps(halves: Halves) -> int:
    return int(halves.learner.newest["step"])


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_learner_that_ends_is_resumed_and_env_servers_wait_for_it(tmp_path: Path, end: str) -> None:
    with Halves(tmp_path, OFTEN) as halves, halves.host(num_envs=2, listens=True) as host:
        learner = halves.learner
        learner.wait_until(lambda values: values["streams"] == 2 and values["checkpoint_age_s"] is not None)
        hosts = [halves.neighbour, host]
        pids = [each.pid for each in hosts]

        assert getattr(learner, end)() in (0, None)
        ended_at = steps(halves)
        learner.start()
        learner.wait_until(lambda values: values["streams"] == 2 and values["step"] > ended_at + 100)

        assert [each.pid for each in hosts] == pids
        (resumed_at,) = learner.resumed_steps()
        assert 0 < resumed_at <= ended_at and (end == "kill" or resumed_at == ended_at)
        assert learner.errors() == [] and learner.terminate() == 0
    tally = serials.tally(witness.testimony(tmp_path))
    assert (tally.torn, tally.duplicated, tally.unreadable) == (0, 0, 0)


def test_a_disk_that_is_full_at_a_checkpoint_is_told_of_and_training_goes_on(tmp_path: Path) -> None:
    with Halves(tmp_path, OFTEN, "--model=mlp", "--hidden-sizes", "256", "256") as halves:
        learner = halves.learner
        learner.wait_until(lambda values: values["checkpoint_age_s"] is not None)
        process = psutil.Process(learner.pid)
        unlimited = process.rlimit(psutil.RLIMIT_FSIZE)

        process.rlimit(psutil.RLIMIT_FSIZE, (400 << 10, unlimited[1]))
        learner.wait_until(lambda values: values["checkpoint_failures"] >= 2)
        full_at = steps(halves)
        kept = checkpoint_steps(tmp_path / "run")
        learner.wait_until(lambda values: values["step"] > full_at + 100)
        num_saved = learner.log().count("saved ")
        process.rlimit(psutil.RLIMIT_FSIZE, unlimited)

        learner.wait_until(lambda _: learner.log().count("saved ") > num_saved)
        assert learner.terminate() == 0
    assert kept and kept[-1] < full_at < checkpoint_steps(tmp_path / "run")[-1]
    assert all(re.search(r"checkpoint at step \d+ not saved: \[Errno 27\] File too large", e) for e in learner.errors())


@pytest.mark.parametrize(("not_finite", "skipped"), [("5-5", 1), ("5-13", 9)], ids=["one", "nine"])
def test_updates_that_are_not_finite_are_skipped(tmp_path: Path, not_finite: str, skipped: int) -> None:
    with diverging(tmp_path, not_finite) as halves:
        assert halves.learner.wait() == 0
        assert halves.learner.newest["num_skipped_updates"] == skipped
    assert halves.learner.errors() == []


def test_ten_updates_in_a_row_that_are_not_finite_end_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    with diverging(tmp_path, "5-14") as halves:
        assert halves.learner.wait() == 1
    (error,) = halves.learner.errors()
    assert "10 updates in a row" in error
    assert len(checkpoint_steps(tmp_path / "run")) == 1


def diverging(folder: Path, not_finite: str) -> Halves:
    """not_finite: the first and the last update with such a loss."""
    flags = (f"--loss={losses.__name__}:loss", "--total-steps=600")
    return Halves(folder, *flags, variables={losses.NOT_FINITE: not_finite})
