"""The action mask in an observation: its place, its leaf, and the check of its values."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.actions import action_leaves_of
from kubebeast_envserver.rows.mask_forms import MaskPlan, elements, form_of_space
from kubebeast_envserver.rows.spaces import Array, UnsupportedSpaceError, flatten, leaves_of

PATH = "action_mask"
"""Key of the mask in an observation, as in PettingZoo and others."""

_Place = tuple[Any, ...]
"""Keys and indices from the top of a structure to one of its parts."""


class ActionMask:
    """A mask with one element for each category of each choice in the action leaves, in their order."""

    def __init__(self, space: spaces.Space[Any], place: _Place, index: int, action: spaces.Space[Any]) -> None:
        """`space` is that of observations, with a mask at `place`. `index` is that of its leaf.

        Raises UnsupportedSpaceError if the mask fits no action.
        """
        self.index = index
        self.path = ".".join(map(str, place))
        self._place = place
        self._form = form_of_space(_part(space, place), self.path)
        self._plan = MaskPlan(action, self._form, self.path)
        self._data_space = _replaced(space, place, None)
        leaves = action_leaves_of(action)
        self._sizes = [leaf.num_categories for leaf in leaves for _ in range(_num_choices(leaf))]
        self._starts = np.cumsum([0, *self._sizes[:-1]])

    @property
    def leaf(self) -> Leaf:
        return Leaf(self.path, "bool", (self._plan.num_categories,), is_action_mask=True)

    def violation(self, observation: Any) -> str | None:
        """Returns the reason that no action can follow an observation of one environment; None if one can."""
        given = elements(self._form, _value(observation, self._place), 1)
        if (given < 0).any():
            return f"the action mask at {self.path!r} holds {given.min()}; 0 forbids a category and 1 allows it"
        free = self._free(self._plan.allowed(given))[0]
        if free.all():
            return None
        choice = int(np.argmin(free))
        return (
            f"the action mask at {self.path!r} allows no category of choice {choice}, {self._sizes[choice]} zeros from "
            f"{self._starts[choice]} of {self._plan.num_categories} categories on, although an action follows"
        )

    def leaves(self, batch: Any) -> tuple[list[Array], NDArray[np.bool_]]:
        """Returns the leaves of a batch of B observations, and bool [B]: the mask is invalid.

        An invalid mask leaves a choice no category, and its leaf then allows all of them, or it holds a number below 0.
        """
        data = flatten(self._data_space, batch)
        value = _value(batch, self._place)
        num_rows = len(data[0]) if data else _num_rows(value)
        given = elements(self._form, value, num_rows)
        allowed = self._plan.allowed(given)
        free = self._free(allowed)
        data.insert(self.index, allowed | ~np.repeat(free, self._sizes, axis=1))
        is_wrong: NDArray[np.bool_] = np.logical_or(~free.all(axis=1), (given < 0).any(axis=1))
        return data, is_wrong

    def _free(self, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns bool [B, choices]: a category may be chosen."""
        return np.logical_or.reduceat(allowed, self._starts, axis=1)


def find_action_mask(observation: spaces.Space[Any], action: spaces.Space[Any]) -> tuple[list[Leaf], ActionMask | None]:
    """Returns the observation leaves as they travel, with the mask among them marked, and the mask if there is one.

    The mask is the value under PATH in a Dict at any depth. Raises UnsupportedSpaceError for several masks, and for one
    that fits no action.
    """
    places = list(_places(observation, ()))
    if not places:
        return leaves_of(observation), None
    if len(places) > 1:
        listed = " and ".join(repr(".".join(map(str, place))) for place in places)
        raise UnsupportedSpaceError(
            f"the observation has action masks at {listed}: join them to one, which has a part for each choice"
        )
    (place,) = places
    leaves = leaves_of(_replaced(observation, place, spaces.Discrete(1)))
    path = ".".join(map(str, place))
    index = next(index for index, leaf in enumerate(leaves) if leaf.path == path)
    mask = ActionMask(observation, place, index, action)
    return [*leaves[:index], mask.leaf, *leaves[index + 1 :]], mask


def _places(space: spaces.Space[Any], place: _Place) -> Iterator[_Place]:
    match space:
        case spaces.Dict():
            for key, entry in space.spaces.items():
                if key == PATH:
                    yield (*place, key)
                else:
                    yield from _places(entry, (*place, key))
        case spaces.Tuple():
            for index, entry in enumerate(space.spaces):
                yield from _places(entry, (*place, index))


def _part(space: Any, place: _Place) -> spaces.Space[Any]:
    for key in place:
        space = space[key]
    part: spaces.Space[Any] = space
    return part


def _value(observation: Any, place: _Place) -> Any:
    for key in place:
        observation = observation[key]
    return observation


def _replaced(space: Any, place: _Place, by: spaces.Space[Any] | None) -> spaces.Space[Any]:
    """Returns the space with another part at `place`; without that key if `by` is None."""
    if not place:
        assert by is not None
        return by
    key, rest = place[0], place[1:]
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_replaced(each, rest, by) if i == key else each for i, each in enumerate(space.spaces)])
    entries = dict(space.spaces)
    if rest or by is not None:
        entries[key] = _replaced(entries[key], rest, by)
    else:
        del entries[key]
    return spaces.Dict(entries)


def _num_rows(batch: Any) -> int:
    """Returns B of a batch of masks."""
    while isinstance(batch, tuple | dict):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return len(batch)


def _num_choices(leaf: Leaf) -> int:
    return math.prod(leaf.shape) if leaf.num_categories > 0 else 0
