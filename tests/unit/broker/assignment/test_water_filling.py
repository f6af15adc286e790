"""An amount is divided by weight, up to limits, and nothing of it is lost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubebeast_broker.assignment.water_filling import Vessel, fill

WEIGHTS = st.floats(1e-3, 1e3)
LIMITS = st.one_of(st.just(math.inf), st.floats(0.0, 100.0))
VESSELS = st.lists(st.builds(Vessel, WEIGHTS, LIMITS, st.floats(0.0, 50.0)), min_size=1, max_size=8)
AMOUNTS = st.floats(0.0, 1e3)


def unlimited(*weights: float) -> list[Vessel]:
    return [Vessel(weight, math.inf) for weight in weights]


@pytest.mark.parametrize(
    ("amount", "vessels", "contents"),
    [
        (16.0, unlimited(1, 1, 1, 1), [4, 4, 4, 4]),
        (16.0, unlimited(1, 2, 5), [2, 4, 10]),
        (16.0, [Vessel(1, 2), Vessel(1, math.inf), Vessel(2, math.inf)], [2, 14 / 3, 28 / 3]),
        (6.0, [Vessel(1, math.inf, 8), *unlimited(1, 1)], [8, 3, 3]),
        (10.0, [Vessel(1, 2), Vessel(3, 4)], [2.5, 7.5]),
        (0.0, unlimited(1, 2), [0, 0]),
        (5.0, [], []),
    ],
    ids=["alike", "by weight", "a limit", "a content", "more than all limits", "nothing", "no vessel"],
)
def test_an_amount_is_divided(amount: float, vessels: list[Vessel], contents: list[float]) -> None:
    assert fill(amount, vessels) == pytest.approx(contents)


@given(AMOUNTS, VESSELS)
def test_nothing_is_lost_or_taken(amount: float, vessels: list[Vessel]) -> None:
    contents = fill(amount, vessels)

    assert math.fsum(contents) == pytest.approx(amount + math.fsum(each.content for each in vessels))
    assert all(after >= before.content - 1e-9 for after, before in zip(contents, vessels, strict=True))


@given(AMOUNTS, VESSELS)
def test_a_limit_is_exceeded_only_if_all_are_full(amount: float, vessels: list[Vessel]) -> None:
    contents = fill(amount, vessels)
    excess = [after > max(each.limit, each.content) + 1e-6 for after, each in zip(contents, vessels, strict=True)]
    room = [after < each.limit - 1e-6 for after, each in zip(contents, vessels, strict=True)]

    assert not (any(excess) and any(room))


@given(AMOUNTS, st.lists(WEIGHTS, min_size=2, max_size=8))
def test_without_limits_parts_are_proportional_to_weights(amount: float, weights: list[float]) -> None:
    contents = fill(amount, unlimited(*weights))

    assert contents == pytest.approx([amount * weight / math.fsum(weights) for weight in weights], abs=1e-9)
