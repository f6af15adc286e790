"""The observation leaf that says which categories may be chosen."""

import numpy as np
import pytest

from kubebeast_envserver.rows.action_mask import ActionMask, find_action_mask
from kubebeast_envserver.rows.spaces import Leaf, UnsupportedSpaceError

ACTION = [
    Leaf("0", "int64", (), num_categories=3),
    Leaf("1", "int8", (2,), num_categories=2),
    Leaf("2", "float32", (4,)),
]
BOARD = Leaf("board", "float32", (9,))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_the_leaf_of_that_name_is_the_mask_and_travels_as_bools(dtype: str) -> None:
    num_categories = 2 if dtype == "int8" else 0
    observation, mask = find_action_mask(
        [Leaf("action_mask", dtype, (7,), num_categories=num_categories), BOARD], ACTION
    )
    assert observation == [Leaf("action_mask", "bool", (7,), is_action_mask=True), BOARD]
    assert mask is not None
    assert mask.index == 0


def test_observations_without_it_are_as_they_were() -> None:
    assert find_action_mask([BOARD], ACTION) == ([BOARD], None)


@pytest.mark.parametrize("leaf", [Leaf("action_mask", "int8", (6,)), Leaf("action_mask", "float32", (7,))])
def test_a_leaf_of_that_name_that_fits_no_action_is_refused(leaf: Leaf) -> None:
    with pytest.raises(UnsupportedSpaceError, match=r"'action_mask' is .* whole numbers \[7\]"):
        find_action_mask([leaf], ACTION)


def test_a_choice_without_a_category_is_found_and_freed() -> None:
    mask = ActionMask(0, ACTION)
    assert mask.forbidden_choice(np.array([0, 0, 1, 1, 0, 0, 1])) is None
    assert mask.forbidden_choice(np.array([1, 1, 1, 1, 1, 0, 0])) == 2
    freed = mask.freed(np.array([[0, 0, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0]]))
    assert freed.astype(int).tolist() == [[1, 1, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 1, 1]]
