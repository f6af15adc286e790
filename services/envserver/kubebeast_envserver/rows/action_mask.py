"""Which categories may be chosen: the observation leaf that says so, and what its rows may hold."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kubebeast_envserver.rows.spaces import Leaf, UnsupportedSpaceError

PATH = "action_mask"
"""The key of an observation that PettingZoo and others put the mask under."""


class ActionMask:
    """One element for each category of each choice in the action leaves, in their order."""

    def __init__(self, index: int, action: Sequence[Leaf]) -> None:
        """index: of the observation leaf."""
        self.index = index
        self._sizes = [leaf.num_categories for leaf in action for _ in range(_num_choices(leaf))]
        self._starts = np.cumsum([0, *self._sizes[:-1]])

    def forbidden_choice(self, mask: NDArray[np.generic]) -> int | None:
        """The first choice that a mask [n] leaves no category; None where all have one."""
        allowed = self._allowed(mask.reshape(1, -1))[0]
        return None if allowed.all() else int(np.argmin(allowed))

    def freed(self, masks: NDArray[np.generic]) -> NDArray[np.bool_]:
        """bool [B, n]: masks [B, n] where a choice without a category may take any."""
        allowed = np.repeat(self._allowed(masks), self._sizes, axis=1)
        return masks.astype(np.bool_) | ~allowed

    def _allowed(self, masks: NDArray[np.generic]) -> NDArray[np.bool_]:
        """bool [B, choices]: a category may be chosen."""
        return np.logical_or.reduceat(masks.astype(np.bool_), self._starts, axis=1)


def find_action_mask(observation: list[Leaf], action: Sequence[Leaf]) -> tuple[list[Leaf], ActionMask | None]:
    """The observation leaves as they travel, with the mask among them marked, and the mask if there is one.

    Raises UnsupportedSpaceError for a leaf of its name that fits no action.
    """
    for index, leaf in enumerate(observation):
        if leaf.path == PATH:
            size = sum(_num_choices(each) * each.num_categories for each in action)
            if leaf.dtype.startswith("float") or leaf.shape != (size,) or size == 0:
                raise UnsupportedSpaceError(
                    f"the observation at {PATH!r} is {leaf.dtype} {list(leaf.shape)}, where a mask of this action has "
                    f"whole numbers [{size}], one a category: give it another key if it is none"
                )
            marked = replace(leaf, dtype="bool", num_categories=0, is_action_mask=True)
            return [*observation[:index], marked, *observation[index + 1 :]], ActionMask(index, action)
    return observation, None


def _num_choices(leaf: Leaf) -> int:
    return math.prod(leaf.shape) if leaf.num_categories > 0 else 0
