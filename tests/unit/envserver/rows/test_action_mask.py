"""The action mask is found in an observation and becomes a leaf of booleans."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.action_mask import ActionMask, find_action_mask
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError

BOARD = spaces.Box(0.0, 1.0, (9,))
BOARD_LEAF = Leaf("board", "float32", (9,))
ACTION = spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2), spaces.Box(-1.0, 1.0, (4,))])
RAGGED = spaces.MultiDiscrete([2, 3])
NESTED = spaces.MultiDiscrete(np.array([[2, 3], [1, 4]]))
JOINT = spaces.Dict({"z": spaces.Discrete(2, start=5), "a": RAGGED, "speed": spaces.Box(0.0, 1.0, ())})


def bits(*shape: int) -> spaces.Box:
    return spaces.Box(0, 1, shape, np.int8)


def found(mask: spaces.Space[Any], action: spaces.Space[Any]) -> ActionMask:
    leaves, result = find_action_mask(spaces.Dict({"action_mask": mask, "board": BOARD}), action)
    assert result is not None and (result.index, leaves[1]) == (0, BOARD_LEAF)
    assert leaves[0] == result.leaf
    return result


def allowed(mask: spaces.Space[Any], action: spaces.Space[Any], batch: Any) -> list[list[int]]:
    """Returns the mask leaf of a batch of masks."""
    first = batch
    while isinstance(first, tuple | dict):
        first = next(iter(first.values() if isinstance(first, dict) else first))
    num_rows = len(first)
    leaves, is_wrong = found(mask, action).leaves({"action_mask": batch, "board": np.zeros((num_rows, 9), np.float32)})
    assert not is_wrong.any() and leaves[0].dtype == np.bool_
    rows: list[list[int]] = leaves[0].astype(int).tolist()
    return rows


@pytest.mark.parametrize(
    "mask",
    [
        *(spaces.Box(0, 1, (7,), np.dtype(dtype)) for dtype in ("int8", "uint8", "int64", "bool")),
        spaces.MultiBinary(7),
        spaces.MultiDiscrete([2] * 7),
        bits(1, 7),
    ],
    ids=str,
)
def test_one_array_with_an_element_for_each_category_is_a_mask(mask: spaces.Space[Any]) -> None:
    assert found(mask, ACTION).leaf == Leaf("action_mask", "bool", (7,), is_action_mask=True)
    row = np.array([0, 1, 1, 1, 0, 0, 1])
    assert allowed(mask, ACTION, np.array([row.reshape(mask.shape or ())])) == [row.tolist()]


def test_any_whole_number_above_0_allows() -> None:
    assert allowed(spaces.Box(0, 255, (5,), np.uint8), RAGGED, np.array([[255, 0, 0, 7, 1]], np.uint8)) == [
        [1, 0, 0, 1, 1]
    ]


@pytest.mark.parametrize(
    ("mask", "action", "batch", "expected"),
    [
        (
            spaces.Tuple([bits(2), spaces.MultiBinary(3)]),
            RAGGED,
            (np.array([[0, 1], [1, 1]]), np.array([[1, 0, 0], [0, 1, 0]])),
            [[0, 1, 1, 0, 0], [1, 1, 0, 1, 0]],
        ),
        (
            spaces.Tuple([spaces.Tuple([bits(2), bits(3)]), spaces.Tuple([bits(1), bits(4)])]),
            NESTED,
            ((np.array([[0, 1]]), np.array([[1, 0, 1]])), (np.array([[1]]), np.array([[0, 0, 0, 1]]))),
            [[0, 1, 1, 0, 1, 1, 0, 0, 0, 1]],
        ),
        (bits(10), NESTED, np.array([[0, 1, 1, 0, 1, 1, 0, 0, 0, 1]]), [[0, 1, 1, 0, 1, 1, 0, 0, 0, 1]]),
        (bits(2, 3), spaces.MultiDiscrete([3, 3]), np.array([[[1, 0, 0], [0, 1, 1]]]), [[1, 0, 0, 0, 1, 1]]),
        (spaces.Box(0, 2, (3,), np.int8), spaces.MultiBinary(3), np.array([[0, 1, 2]]), [[1, 0, 0, 1, 1, 1]]),
        (
            spaces.Tuple([bits(3), bits(4), bits(0)]),
            ACTION,
            (np.array([[0, 0, 1]]), np.array([[1, 0, 1, 1]]), np.zeros((1, 0))),
            [[0, 0, 1, 1, 0, 1, 1]],
        ),
        (
            spaces.Tuple([bits(3), spaces.Box(0, 2, (2,), np.int8)]),
            ACTION,
            (np.array([[0, 0, 1]]), np.array([[2, 1]])),
            [[0, 0, 1, 1, 1, 0, 1]],
        ),
        (
            spaces.Dict({"z": bits(2), "a": spaces.Tuple([bits(2), bits(3)])}),
            JOINT,
            {"z": np.array([[0, 1]]), "a": (np.array([[1, 0]]), np.array([[0, 0, 1]]))},
            [[1, 0, 0, 0, 1, 0, 1]],
        ),
    ],
    ids=["ragged", "nested", "flat for nested", "rows", "bits", "with numbers", "without numbers", "dict"],
)
def test_masks_have_every_form_that_gymnasium_samples_by(
    mask: spaces.Space[Any], action: spaces.Space[Any], batch: Any, expected: list[list[int]]
) -> None:
    assert allowed(mask, action, batch) == expected


def test_a_mask_may_stand_anywhere_in_the_structure() -> None:
    inner = spaces.Dict({"observation": BOARD, "action_mask": bits(2)})
    leaves, mask = find_action_mask(spaces.Dict({"agent": spaces.Tuple([inner])}), spaces.Discrete(2))
    assert mask is not None
    assert leaves == [
        Leaf("agent.0.action_mask", "bool", (2,), is_action_mask=True),
        Leaf("agent.0.observation", "float32", (9,)),
    ]
    batch = {"agent": ({"observation": np.zeros((1, 9), np.float32), "action_mask": np.array([[0, 1]])},)}
    assert mask.leaves(batch)[0][0].astype(int).tolist() == [[0, 1]]


def test_observations_without_it_are_as_they_were() -> None:
    assert find_action_mask(spaces.Dict({"board": BOARD}), ACTION) == ([BOARD_LEAF], None)


@pytest.mark.parametrize(
    ("mask", "action", "message"),
    [
        (bits(6), ACTION, r"'action_mask' is int8 \[6\], but a mask of Tuple.* has whole numbers \[7\]"),
        (spaces.Box(0, 1, (7,), np.float32), ACTION, r"'action_mask' is float32 \[7\].*probabilities are no mask"),
        (spaces.Tuple([bits(2), bits(2)]), RAGGED, r"'action_mask.1' is int8 \[2\], .* whole numbers \[3\]"),
        (spaces.Tuple([bits(2)]), RAGGED, r"is a tuple of 1, .* or a tuple of 2 masks"),
        (spaces.Dict({"a": bits(5)}), JOINT, r"is a dict of 'a', .*: 'z' has none"),
        (spaces.Dict({"y": bits(5), "z": bits(2)}), JOINT, r"is a dict of 'y', 'z', .* a dict with the masks of"),
        (spaces.Dict({"0": bits(2), "1": bits(3)}), RAGGED, "is a dict of '0', '1'"),
        (bits(3), spaces.MultiBinary(3), r"int8 \[3\] of 0 and 1, .* \[3\] of 0, 1 and 2: in gymnasium's form 2"),
        (spaces.Text(3), RAGGED, "which is no array of 0 and 1"),
        (bits(2), spaces.Box(0.0, 1.0, (2,)), "nothing, as numbers are not masked"),
    ],
)
def test_a_mask_that_fits_no_action_is_refused(
    mask: spaces.Space[Any], action: spaces.Space[Any], message: str
) -> None:
    with pytest.raises(UnsupportedSpaceError, match=message):
        found(mask, action)


def test_several_masks_are_refused_with_their_places() -> None:
    each = spaces.Dict({"action_mask": bits(2), "board": BOARD})
    with pytest.raises(UnsupportedSpaceError, match=r"masks at 'a\.action_mask' and 'b\.action_mask'"):
        find_action_mask(spaces.Dict({"a": each, "b": each}), spaces.MultiDiscrete([2, 2]))


def test_a_choice_without_a_category_is_named_and_freed() -> None:
    mask = found(bits(7), ACTION)
    board = np.zeros(9, np.float32)
    assert mask.violation({"action_mask": np.array([0, 0, 1, 1, 0, 0, 1]), "board": board}) is None
    text = mask.violation({"action_mask": np.array([1, 1, 1, 1, 1, 0, 0]), "board": board})
    assert text is not None and "'action_mask' allows no category of choice 2, 2 zeros from 5 of 7" in text
    text = mask.violation({"action_mask": np.array([1, 1, -1, 1, 1, 1, 1]), "board": board})
    assert text is not None and "holds -1; 0 forbids" in text
    batch = {
        "action_mask": np.array([[0, 0, 0, 1, 0, 0, 1], [1, 0, 0, 0, 1, 1, 1]]),
        "board": np.zeros((2, 9), np.float32),
    }
    leaves, is_wrong = mask.leaves(batch)
    assert leaves[0].astype(int).tolist() == [[1, 1, 1, 1, 0, 0, 1], [1, 0, 0, 0, 1, 1, 1]]
    assert is_wrong.tolist() == [True, False]
