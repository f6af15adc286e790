"""With a fixed lag, unrolls have an order and weights that depend on no clock."""

import pytest

from kubebeast_learner.actors.lag import LagSchedule, Order, group_size


@pytest.mark.parametrize(
    ("num_envs", "batch_size", "multiple", "expected"),
    [
        (32, 2, 1, 2),
        (32, 8, 1, 8),
        (32, 32, 1, 8),
        (7, 4, 1, 1),
        (12, 8, 1, 4),
        (12, 6, 3, 6),
        (12, 6, 2, 6),
        (24, 24, 12, 12),
    ],
)
def test_groups_fit_into_environments_and_batches(num_envs: int, batch_size: int, multiple: int, expected: int) -> None:
    assert group_size(num_envs, batch_size, multiple) == expected


def test_a_batch_that_would_split_an_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="4 unrolls are no multiple of 3 agents"):
        LagSchedule(12, 4, 1, 3)


def orders(schedule: LagSchedule, num_batches: int) -> list[list[Order]]:
    return [list(schedule.release(version)) for version in range(num_batches)]


def test_each_batch_is_played_with_the_weights_of_its_lag() -> None:
    at_once, *then = orders(LagSchedule(4, 2, lag=1), 4)  # two groups of two, a batch each

    assert at_once == [Order(0, 0), Order(1, 0)]
    assert then == [[Order(0, 1)], [Order(1, 2)], [Order(0, 3)]]


def test_groups_play_several_unrolls_of_a_large_batch() -> None:
    schedule = LagSchedule(16, 32, lag=0)  # two groups of eight, four unrolls in a batch

    first, second = orders(schedule, 2)

    assert first == [Order(0, 0), Order(1, 0), Order(0, 0), Order(1, 0)]
    assert second == [Order(0, 1), Order(1, 1), Order(0, 1), Order(1, 1)]
    assert schedule.unrolls_per_group == 2


def test_an_update_that_was_skipped_delays_no_unroll() -> None:
    schedule = LagSchedule(2, 2, lag=0)

    assert [list(schedule.release(version)) for version in (0, 0, 1)] == [[Order(0, 0)], [Order(0, 0)], [Order(0, 1)]]
