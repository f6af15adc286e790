"""Conversion of action spaces to leaves, and of the learner's choices to actions of a gymnasium vector env.

Boxes travel as float32. If all bounds of a Box are finite, -1 and 1 stand for them. Otherwise numbers stand for
themselves, and are clipped to the finite bounds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.spaces import Array, leaves_of

_LARGEST_BOUND = 1e30
"""Larger bounds count as none: float32's largest number often stands for no bound."""


def action_leaves_of(space: spaces.Space[Any]) -> list[Leaf]:
    """Returns the leaves of one environment's action space, in wire order. Raises UnsupportedSpaceError."""
    return leaves_of(space, lambda name, box: Leaf(name, "float32", box.shape, bounded=_is_bounded(box)))


@np.errstate(all="ignore")  # an environment may have set errors to raise
def to_actions(space: spaces.Space[Any], leaves: list[Array]) -> Any:
    """Returns the actions of B environments, for the step of a gymnasium vector env, from one array [B, *shape] per
    leaf.
    """
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
    """Converts float32 [B, *shape] to the dtype of the Box, within its bounds, and finite if possible."""
    numbers = np.nan_to_num(numbers.astype(np.float64))
    if _is_bounded(space):
        numbers = np.clip(numbers, -1.0, 1.0)
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        inside = low + (numbers + 1.0) / 2.0 * (high - low)
        return _rounded(space, inside) if space.dtype.kind == "f" else _whole(space, numbers, np.rint(inside))
    return _rounded(space, numbers)


def _rounded(space: spaces.Box, numbers: Array) -> Array:
    """Converts float64 to the dtype of a Box of floats, clipped to its bounds and to the largest finite number."""
    largest = float(np.finfo(str(space.dtype)).max)
    low, high = np.maximum(space.low, -largest), np.minimum(space.high, largest)
    numbers = np.clip(numbers, low, high)  # before the cast: large numbers would become infinite
    return np.clip(numbers.astype(space.dtype), low, high)  # after it: it may round over a bound


def _whole(space: spaces.Box, shares: Array, inside: Array) -> Array:
    """Converts whole numbers in float64, which may round bounds, to a Box of integers or bools.

    `shares` are their places between the bounds, -1 to 1.
    """
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    result = np.where((inside > low) & (inside < high), inside, 0.0).astype(space.dtype)
    result = np.where((inside <= low) | (shares <= -1.0), space.low, result)
    return np.where((inside >= high) & (inside > low) | (shares >= 1.0), space.high, result)


def _is_bounded(space: spaces.Box) -> bool:
    bounds = np.concatenate([space.low.ravel(), space.high.ravel()]).astype(np.float64)
    return bool((np.abs(bounds) < _LARGEST_BOUND).all())
