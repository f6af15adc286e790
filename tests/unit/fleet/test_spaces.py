"""Spaces are restored from their flattened leaves, and actions become leaves again."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate

from kubebeast_common.spec.spaces import action_leaves, action_space, observation_batch, observation_space
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.spaces import leaves_of
from kubebeast_native import LeafSpec

BOUNDED = spaces.Box(-2.0, 3.0, (2,), np.float32)
FREE = spaces.Box(-np.inf, np.inf, (2,), np.float32)


def received(leaves: Any) -> list[LeafSpec]:
    """Returns the pool's form of the env-server's leaves."""
    return [
        LeafSpec(leaf.path, leaf.dtype, leaf.shape, leaf.frame_stack, leaf.num_categories, leaf.bounded)
        for leaf in leaves
    ]


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(3, start=1), spaces.Discrete(3)),
        (spaces.MultiDiscrete([2, 5]), spaces.MultiDiscrete([2, 5])),
        (spaces.MultiBinary(4), spaces.MultiBinary((4,))),
        (BOUNDED, spaces.Box(-1.0, 1.0, (2,), np.float32)),
        (FREE, FREE),
        (
            spaces.Dict({"turn": spaces.Discrete(3), "arm": spaces.Dict({"force": BOUNDED})}),
            spaces.Dict({"arm.force": spaces.Box(-1.0, 1.0, (2,), np.float32), "turn": spaces.Discrete(3)}),
        ),
        (
            spaces.Tuple((spaces.Discrete(2), FREE)),
            spaces.Dict({"0": spaces.Discrete(2), "1": FREE}),
        ),
    ],
    ids=str,
)
def test_actions_of_the_space_reach_the_environment(space: spaces.Space[Any], expected: spaces.Space[Any]) -> None:
    leaves = received(action_leaves_of(space))
    mine = action_space(leaves)
    assert mine == expected

    batch = batch_space(mine, 5)
    batch.seed(0)
    arrays = action_leaves(leaves, batch.sample(), 5)
    taken = to_actions(space, arrays)
    assert all(action in space for action in iterate(batch_space(space, 5), taken))


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(0.0, 1.0, (3,), np.float32), spaces.Box(-np.inf, np.inf, (3,), np.float32)),
        (spaces.Box(0, 9, (3,), np.uint8), spaces.Box(-np.inf, np.inf, (3,), np.float32)),
        (spaces.Discrete(4), spaces.Discrete(4)),
        (spaces.MultiBinary((2, 2)), spaces.MultiBinary((2, 2))),
        (
            spaces.Dict({"eye": spaces.Dict({"left": spaces.Box(0, 255, (2,), np.uint8)}), "mode": spaces.Discrete(2)}),
            spaces.Dict({"eye.left": spaces.Box(0, 255, (2,), np.uint8), "mode": spaces.Discrete(2)}),
        ),
    ],
    ids=str,
)
def test_observations_have_the_shape_of_their_leaves(space: spaces.Space[Any], expected: spaces.Space[Any]) -> None:
    assert observation_space(received(leaves_of(space))) == expected


def test_a_stack_of_frames_is_the_first_axis() -> None:
    leaf = LeafSpec("", "uint8", (84, 84), frame_stack=4)

    assert observation_space([leaf]) == spaces.Box(0, 255, (4, 84, 84), np.uint8)


def test_a_mask_of_actions_is_a_box_of_truth_values() -> None:
    leaf = LeafSpec("action_mask", "bool", (6,), is_action_mask=True)

    assert observation_space([leaf]) == spaces.Dict({"action_mask": spaces.Box(0, 1, (6,), np.bool_)})


def test_leaves_with_names_are_a_dict_of_arrays() -> None:
    leaves = [LeafSpec("a", "float32", ()), LeafSpec("b.c", "float32", (2,))]
    arrays = [np.zeros(3, np.float32), np.ones((3, 2), np.float32)]

    batch = observation_batch(leaves, arrays)
    assert isinstance(batch, dict)
    assert list(batch) == ["a", "b.c"] and batch["b.c"] is arrays[1]


@pytest.mark.parametrize(
    ("leaves", "actions", "message"),
    [
        ([LeafSpec("", "int64", (), num_categories=3)], [0, 1], r"actions has the shape \[2\], expected \[3\]"),
        ([LeafSpec("", "int64", (), num_categories=3)], [0, 1, 3], "actions has values outside 0 to 2"),
        ([LeafSpec("x", "float32", ())], [0.0, 0.0, 0.0], r"a dict with the keys \['x'\]"),
        (
            [LeafSpec("x", "float32", (2,))],
            {"x": np.zeros(3)},
            r"actions\['x'\] has the shape \[3\], expected \[3, 2\]",
        ),
        ([LeafSpec("0", "int64", (), num_categories=3)], np.zeros(3), r"the shape \[3\], expected \[3, 1\]"),
    ],
)
def test_an_action_that_is_none_is_named(leaves: list[LeafSpec], actions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        action_leaves(leaves, actions, 3)
