"""Action spaces become leaves, and every choice of a learner becomes an action of the space."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from tests.unit.envserver.rows.test_spaces import any_space

HALF_OPEN = spaces.Box(np.array([0.0, -np.inf], np.float32), np.array([np.inf, 2.0], np.float32))
LARGEST = float(np.finfo(np.float32).max)


@given(space=any_space, num_envs=st.integers(1, 3), seed=st.integers(0, 10))
@settings(max_examples=100, deadline=None)
def test_whatever_a_learner_may_choose_is_an_action_of_the_space(
    space: spaces.Space[Any], num_envs: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    arrays = []
    for leaf in action_leaves_of(space):
        shape = (num_envs, *leaf.shape)
        chosen = (
            random.integers(leaf.num_categories, size=shape) if leaf.num_categories else 3 * random.normal(size=shape)
        )
        arrays.append(chosen.astype(leaf.dtype))
    rows = list(iterate(batch_space(space, num_envs), to_actions(space, arrays)))
    assert len(rows) == num_envs
    for row in rows:
        assert space.contains(row)


def test_boxes_travel_as_float32_and_tell_whether_they_are_bounded() -> None:
    assert action_leaves_of(spaces.Box(-2.0, 2.0, (1,), np.float64)) == [Leaf("", "float32", (1,), bounded=True)]
    assert action_leaves_of(spaces.Box(0, 255, (2, 2), np.uint8)) == [Leaf("", "float32", (2, 2), bounded=True)]
    assert action_leaves_of(HALF_OPEN) == [Leaf("", "float32", (2,))]
    assert action_leaves_of(spaces.Box(-LARGEST, LARGEST, (1,))) == [Leaf("", "float32", (1,))]


@pytest.mark.parametrize(
    ("space", "chosen", "action"),
    [
        (spaces.Box(-2.0, 2.0, (3,)), [-1.0, 0.5, 1.0], [-2.0, 1.0, 2.0]),
        (spaces.Box(0.0, 1.0, (2,)), [-7.0, 7.0], [0.0, 1.0]),
        (spaces.Box(np.array([0.0, 3.0], np.float32), np.array([10.0, 3.0], np.float32)), [0.0, 0.7], [5.0, 3.0]),
        (spaces.Box(0, 255, (3,), np.uint8), [-1.0, 0.0, 2.0], [0, 128, 255]),
        (HALF_OPEN, [-1.5, 1.5], [0.0, 1.5]),
        (HALF_OPEN, [100.0, 100.0], [100.0, 2.0]),
    ],
)
def test_minus_one_and_one_stand_for_the_bounds(space: spaces.Box, chosen: list[float], action: list[float]) -> None:
    actions = to_actions(space, [np.array([chosen], np.float32)])
    assert actions.dtype == space.dtype
    assert actions.tolist() == [action]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.int8, np.uint8])
def test_every_bound_of_whole_numbers_is_reached_and_none_is_left(dtype: Any) -> None:
    info = np.iinfo(dtype)
    for low, high in ((info.min, info.max), (info.max // 2, info.max), (info.max - 1, info.max)):
        space = spaces.Box(low, high, (4,), dtype)
        actions = to_actions(space, [np.array([[-1.0, 1.0, 5.0, 0.9999999]], np.float32)])
        assert actions.dtype == dtype
        assert actions[0, :3].tolist() == [low, high, high]
        assert low <= int(actions[0, 3]) <= high


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-60000, 60000, (2,), np.float16),
        spaces.Box(-np.inf, np.inf, (2,), np.float16),
        spaces.Box(0.1, np.inf, (2,), np.float32),
        spaces.Box(-1e300, 1e300, (2,), np.float64),
        spaces.Box(0, 1, (2,), np.bool_),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_numbers_of_any_size_become_finite_ones_within_the_bounds(space: spaces.Box) -> None:
    with np.errstate(all="raise"):  # as an environment may set it
        for number in (-1e38, -1.0, 1e-40, 1.0, 1e38):
            (action,) = to_actions(space, [np.full((1, 2), number, np.float32)])
            assert space.contains(action) and np.isfinite(action).all()


def test_categories_start_at_start_in_the_environment() -> None:
    assert to_actions(spaces.Discrete(3, start=-1), [np.array([0, 2])]).tolist() == [-1, 1]


def test_too_many_action_leaves_are_refused() -> None:
    with pytest.raises(ValueError, match="2 arrays are more"):
        to_actions(spaces.Discrete(2), [np.zeros(1), np.zeros(1)])
