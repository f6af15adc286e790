"""A training counts as alive while its loop turns, with patience for slow operations."""

import pytest

from kubebeast_learner.training.monitor import FIRST_UPDATE_S, LATER_UPDATE_S, SAVE_S, Monitor
from tests.unit.learner.run.test_run_stats import Clock


def test_a_loop_that_turns_has_no_problem_however_long_it_waits_for_environments() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    for _ in range(10):
        clock.now += FIRST_UPDATE_S
        assert monitor.problem() == ""
        monitor.note_turn()


def test_the_first_update_may_take_long() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    clock.now = FIRST_UPDATE_S
    assert monitor.problem() == ""
    clock.now += 1.0
    assert monitor.problem() == "no progress of the training loop for 601 s"


def test_a_training_that_is_over_has_no_problem() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    monitor.note_update()
    monitor.note_finished()
    clock.now += 10 * FIRST_UPDATE_S
    assert monitor.problem() == ""
    assert monitor.is_finished


def test_a_checkpoint_takes_as_long_as_its_disk_does() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    monitor.note_update()
    with monitor.saving():
        clock.now += 10 * LATER_UPDATE_S
        assert monitor.problem() == ""
    assert monitor.problem() == ""
    clock.now += LATER_UPDATE_S + 1
    assert monitor.problem() == "no progress of the training loop for 121 s"


def test_a_disk_that_hangs_is_a_problem_in_the_end() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    with monitor.saving():
        clock.now += SAVE_S + 1
        assert monitor.problem() == "no progress of the training loop for 3601 s"


def test_a_checkpoint_that_fails_is_no_problem_of_the_loop() -> None:
    monitor = Monitor(Clock())
    with pytest.raises(OSError, match="full"), monitor.saving():
        raise OSError("full")
    assert monitor.problem() == ""


def test_later_ones_may_not() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    monitor.note_update()
    clock.now = LATER_UPDATE_S
    assert monitor.problem() == ""
    clock.now += 1.0
    assert monitor.problem() == "no progress of the training loop for 121 s"
    monitor.note_turn()
    assert monitor.problem() == ""


def test_waiting_for_other_ranks_is_no_standstill_until_this_one_gives_up() -> None:
    clock = Clock()
    monitor = Monitor(clock, longest_wait_s=300.0)
    monitor.note_update()
    clock.now = 300.0 + LATER_UPDATE_S
    assert monitor.problem() == ""
    clock.now += 1.0
    assert monitor.problem() == "no progress of the training loop for 421 s"
