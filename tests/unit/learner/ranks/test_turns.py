"""A rank waits a limited time for a batch of its own."""

from collections.abc import Callable

import pytest
import torch

from kubebeast_learner.ranks import turns
from kubebeast_learner.ranks.turns import Turns
from tests.unit.learner.run.test_run_stats import Clock

PATIENCE_S = 5.0


@pytest.fixture
def with_other(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], None]:
    """Makes another rank contribute these numbers in every later turn."""

    def set_other(numbers: list[float]) -> None:
        monkeypatch.setattr(turns, "sum_over_ranks", lambda mine: mine + torch.tensor(numbers, dtype=mine.dtype))

    return set_other


BATCH_OF_30 = [1.0, 30.0, 20.0, 0.0, 0.0, 0.0]
NOTHING = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
STOP = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]


def test_shares_add_up_to_the_global_batch(with_other: Callable[[list[float]], None]) -> None:
    with_other([*BATCH_OF_30, 20.0, 0.0])
    turn = Turns(2, PATIENCE_S).agree(has_batch=True, num_valid=10, num_fresh=5, task_steps=[2, 3])

    assert turn.num_batches == 2
    assert turn.share.valid == 10 / 40
    assert turn.share.fresh == 5 / 25
    assert turn.task_steps == (22, 3)
    assert not turn.is_last


def test_a_rank_without_a_batch_joins_when_the_others_have_waited(with_other: Callable[[list[float]], None]) -> None:
    clock = Clock()
    mine = Turns(2, PATIENCE_S, clock)

    assert not mine.must_join(has_batch=False, stop=False)
    clock.now += PATIENCE_S
    assert mine.must_join(has_batch=False, stop=False)


def test_nobody_waits_twice_for_a_rank_that_starves(with_other: Callable[[list[float]], None]) -> None:
    clock = Clock()
    mine = Turns(2, PATIENCE_S, clock)
    with_other(BATCH_OF_30)
    mine.agree(has_batch=False)
    mine.begin_wait()

    assert mine.is_starving
    assert mine.must_join(has_batch=False, stop=False)
    assert mine.num_empty == 1

    mine.agree(has_batch=True, num_valid=10)
    mine.begin_wait()
    assert not mine.must_join(has_batch=False, stop=False)


def test_ranks_that_all_starve_have_patience(with_other: Callable[[list[float]], None]) -> None:
    mine = Turns(2, PATIENCE_S, Clock())
    with_other(NOTHING)
    turn = mine.agree(has_batch=False)
    mine.begin_wait()

    assert turn.num_batches == 0
    assert not mine.must_join(has_batch=False, stop=False)
    assert mine.num_empty == 0


def test_a_stop_request_of_one_rank_is_the_last_turn_of_all(with_other: Callable[[list[float]], None]) -> None:
    mine = Turns(2, PATIENCE_S, Clock())
    with_other(STOP)

    assert mine.agree(has_batch=False).is_last
    assert mine.must_join(has_batch=False, stop=True)


def test_a_notice_of_one_rank_is_known_to_all_and_costs_no_rank_its_patience(
    with_other: Callable[[list[float]], None],
) -> None:
    mine = Turns(2, PATIENCE_S, Clock())
    with_other([*BATCH_OF_30[:5], 2.0])

    assert mine.must_join(has_batch=False, stop=False, notice=True)
    assert mine.agree(has_batch=False, num_notices=1).num_notices == 3
    mine.begin_wait()
    assert (mine.num_empty, mine.is_starving) == (0, False)
