"""Conversion of leaves to gymnasium spaces, and of batches of leaves to those of a vector environment; needs gymnasium.

Env-servers flatten their spaces, and spaces here are flat, too: one leaf is its own space, several are a Dict by path.
Each element of a MultiDiscrete is a leaf, so an action with only such leaves becomes a MultiDiscrete again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import LeafSpec

Array = NDArray[Any]
Batch = Array | dict[str, Array]
Space = spaces.Space[Any]


def observation_space(leaves: Sequence[LeafSpec]) -> Space:
    """Returns the space of one environment. Bounds are not sent: integers get those of their dtype, floats none."""
    return _joined(leaves, [_observation_leaf(leaf) for leaf in leaves])


def observation_batch(leaves: Sequence[LeafSpec], arrays: Sequence[Array]) -> Batch:
    """Returns arrays [N, *row_shape], one per leaf, in the structure of `observation_space`."""
    if _is_single(leaves):
        return arrays[0]
    return {leaf.path: array for leaf, array in zip(leaves, arrays, strict=True)}


def action_space(leaves: Sequence[LeafSpec]) -> Space:
    """Returns the space of one environment. A bounded Box is [-1, 1]; its env-server maps it to the original bounds."""
    if _is_multi_discrete(leaves):
        return spaces.MultiDiscrete([leaf.num_categories for leaf in leaves])
    return _joined(leaves, [_action_leaf(leaf) for leaf in leaves])


def action_batch(leaves: Sequence[LeafSpec], arrays: Sequence[Array]) -> Batch:
    """Returns arrays [N, *shape], one per leaf, in the structure of `action_space`; inverts `action_leaves`."""
    if _is_multi_discrete(leaves):
        return np.stack(arrays, axis=-1)
    return observation_batch(leaves, arrays)


def action_leaves(leaves: Sequence[LeafSpec], actions: Any, num_rows: int) -> list[Array]:
    """Returns arrays [N, *shape], one per leaf, with its dtype. Raises ValueError for a wrong shape or category."""
    if _is_multi_discrete(leaves):
        columns = np.asarray(actions)
        _check_shape("actions", columns, (num_rows, len(leaves)))
        parts: Sequence[Any] = list(columns.T)
    elif _is_single(leaves):
        parts = [actions]
    elif isinstance(actions, Mapping) and set(actions) == {leaf.path for leaf in leaves}:
        parts = [actions[leaf.path] for leaf in leaves]
    else:
        raise ValueError(f"actions must be a dict with the keys {[leaf.path for leaf in leaves]}")
    return [_action_array(leaf, part, num_rows) for leaf, part in zip(leaves, parts, strict=True)]


def _action_array(leaf: LeafSpec, values: Any, num_rows: int) -> Array:
    name = f"actions[{leaf.path!r}]" if leaf.path else "actions"
    array = np.ascontiguousarray(values, dtype=leaf.dtype)
    _check_shape(name, array, (num_rows, *leaf.shape))
    if leaf.num_categories and not ((array >= 0) & (array < leaf.num_categories)).all():
        raise ValueError(f"{name} has values outside 0 to {leaf.num_categories - 1}")
    return array


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {list(array.shape)}, expected {list(shape)}")


def _is_single(leaves: Sequence[LeafSpec]) -> bool:
    return len(leaves) == 1 and leaves[0].path == ""


def _is_multi_discrete(leaves: Sequence[LeafSpec]) -> bool:
    numbered = all(leaf.path == str(index) for index, leaf in enumerate(leaves))
    return numbered and all(leaf.num_categories > 0 and leaf.shape == () for leaf in leaves)


def _joined(leaves: Sequence[LeafSpec], parts: Sequence[Space]) -> Space:
    if _is_single(leaves):
        return parts[0]
    return spaces.Dict({leaf.path: part for leaf, part in zip(leaves, parts, strict=True)})


def _categories(leaf: LeafSpec, shape: tuple[int, ...]) -> Space:
    if shape == ():
        return spaces.Discrete(leaf.num_categories)
    if leaf.dtype == "int8":
        return spaces.MultiBinary(shape)
    return spaces.MultiDiscrete(np.full(shape, leaf.num_categories))


def _observation_leaf(leaf: LeafSpec) -> Space:
    if leaf.num_categories:
        return _categories(leaf, leaf.row_shape)
    dtype = np.dtype(leaf.dtype)
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, leaf.row_shape, dtype.type)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(low, high, leaf.row_shape, dtype.type)


def _action_leaf(leaf: LeafSpec) -> Space:
    if leaf.num_categories:
        return _categories(leaf, leaf.shape)
    bound = 1.0 if leaf.bounded else np.inf
    return spaces.Box(-bound, bound, leaf.shape, np.dtype(leaf.dtype).type)
