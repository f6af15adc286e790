"""Action spaces to leaves, and what the learner chose back to actions of a gymnasium vector env.

Boxes travel as float32. Where all bounds of one are finite, -1 and 1 stand for them; else a number stands for itself,
and is cut off at the bounds there are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_envserver.rows.spaces import Array, Leaf, leaves_of

_LARGEST_BOUND = 1e30
"""Bounds beyond it stand for none: float32's largest number is a common way to say so."""


def action_leaves_of(space: spaces.Space[Any]) -> list[Leaf]:
    """The leaves of one environment's action space, in wire order. Raises UnsupportedSpaceError."""
    return leaves_of(space, lambda name, box: Leaf(name, "float32", box.shape, bounded=_is_bounded(box)))


def to_actions(space: spaces.Space[Any], leaves: list[Array]) -> Any:
    """The actions of B environments, as a gymnasium vector env's step takes them, from one array [B, *shape] a leaf."""
    entries = iter(leaves)
    batch = _to_actions(space, lambda: next(entries))
    if next(entries, None) is not None:
        raise ValueError(f"leaves: {len(leaves)} arrays are more than {space} has leaves")
    return batch


def _to_actions(space: spaces.Space[Any], take: Callable[[], Array]) -> Any:
    match space:
        case spaces.Dict():
            parts = {key: _to_actions(space[key], take) for key in sorted(space.spaces)}
            return {key: parts[key] for key in space.spaces}
        case spaces.Tuple():
            return tuple(_to_actions(entry, take) for entry in space.spaces)
        case spaces.Discrete():
            return (take() + int(space.start)).astype(space.dtype)
        case spaces.MultiDiscrete():
            columns = np.stack([take() for _ in range(space.nvec.size)], axis=1)
            return columns.reshape(-1, *space.shape).astype(space.dtype) + space.start
        case spaces.Box():
            return _to_box(space, take())
        case _:
            return take().astype(space.dtype, copy=False)


def _to_box(space: spaces.Box, numbers: Array) -> Array:
    """[B, *shape] of the Box's dtype and within its bounds, from float32 [B, *shape]."""
    numbers = numbers.astype(np.float64)
    if _is_bounded(space):
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        numbers = low + (np.clip(numbers, -1.0, 1.0) + 1.0) / 2.0 * (high - low)
    numbers = np.clip(numbers, space.low, space.high)  # before the cast: integers would wrap round
    if space.dtype.kind in "iub":
        numbers = np.rint(numbers)
    return np.clip(numbers.astype(space.dtype), space.low, space.high)  # after it: float32 may round over a bound


def _is_bounded(space: spaces.Box) -> bool:
    bounds = np.concatenate([space.low.ravel(), space.high.ravel()]).astype(np.float64)
    return bool((np.abs(bounds) < _LARGEST_BOUND).all())
