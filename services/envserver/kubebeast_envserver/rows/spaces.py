"""Gymnasium spaces to leaves: the flat, ordered form in which structures travel (LeafSpec).

Order: Dict entries by sorted key, Tuple and MultiDiscrete entries by index; a path joins keys and indices with dots.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float32", "float64", "bool")
"""Element types that the wire carries."""


class UnsupportedSpaceError(ValueError):
    """A space that cannot be carried; the message names its place, what it is and what can be done."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Shape and element type of one leaf, for one environment (kubebeast.v1.LeafSpec)."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    frame_stack: int = 1
    """k > 1: k frames of `shape`, oldest first, make a row."""
    num_categories: int = 0
    """n > 0: categories 0 .. n-1."""
    bounded: bool = False
    """Of an action leaf of numbers: they lie in [-1, 1]."""
    is_action_mask: bool = False
    """Of an observation leaf: which categories of the action leaves may be chosen."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """What a model sees of one row: `shape`, or `(frame_stack, *shape)` when frame_stack > 1."""
        return (self.frame_stack, *self.shape) if self.frame_stack > 1 else self.shape


def leaves_of(space: spaces.Space[Any], box_leaf: Callable[[str, spaces.Box], Leaf] | None = None) -> list[Leaf]:
    """The leaves of one environment's space, in wire order. Raises UnsupportedSpaceError.

    box_leaf: the leaf of a Box and its path; by default one that holds what the Box holds.
    """
    leaves = list(_leaves(space, (), box_leaf or _box_leaf))
    paths = [leaf.path for leaf in leaves]
    for path in paths:
        if paths.count(path) > 1:
            raise UnsupportedSpaceError(f"two leaves share the path {path!r}: rename a key of the Dict space")
    if not leaves:
        raise UnsupportedSpaceError(f"{space} holds nothing that could be sent")
    return leaves


def flatten(space: spaces.Space[Any], batch: Any) -> list[Array]:
    """A batch of B elements, as a gymnasium vector env returns it, as one C-contiguous [B, *shape] array a leaf."""
    return list(_flatten(space, batch))


def _leaves(
    space: spaces.Space[Any], path: tuple[str, ...], box_leaf: Callable[[str, spaces.Box], Leaf]
) -> Iterator[Leaf]:
    name = ".".join(path)
    match space:
        case spaces.Dict():
            if len({type(key) for key in space.spaces}) > 1:
                raise UnsupportedSpaceError(
                    f"{_where(name)} {space} has keys of several types, which have no order: make all of them texts"
                )
            for key in sorted(space.spaces):
                yield from _leaves(space[key], (*path, str(key)), box_leaf)
        case spaces.Tuple():
            for index, entry in enumerate(space.spaces):
                yield from _leaves(entry, (*path, str(index)), box_leaf)
        case spaces.Discrete():
            yield Leaf(name, "int64", (), num_categories=int(space.n))
        case spaces.MultiDiscrete():
            for index, n in enumerate(space.nvec.flat):
                yield Leaf(".".join((*path, str(index))), "int64", (), num_categories=int(n))
        case spaces.MultiBinary():
            yield Leaf(name, "int8", space.shape, num_categories=2)
        case spaces.Box():
            yield box_leaf(name, space)
        case _:
            raise UnsupportedSpaceError(
                f"{_where(name)} {space!r} is a {type(space).__name__} space, which has no fixed array form: turn it "
                "into Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple with a wrapper"
            )


def _box_leaf(name: str, space: spaces.Box) -> Leaf:
    if str(space.dtype) not in DTYPES:
        raise UnsupportedSpaceError(
            f"{_where(name)} {space} has the dtype {space.dtype}, which cannot be sent: convert it to one of "
            f"{', '.join(DTYPES)} with a wrapper (gymnasium.wrappers.DtypeObservation)"
        )
    return Leaf(name, str(space.dtype), space.shape)


def _where(name: str) -> str:
    return f"at {name!r}:" if name else "the space"


def _flatten(space: spaces.Space[Any], batch: Any) -> Iterator[Array]:
    match space:
        case spaces.Dict():
            for key in sorted(space.spaces):
                yield from _flatten(space[key], batch[key])
        case spaces.Tuple():
            for entry, part in zip(space.spaces, batch, strict=True):
                yield from _flatten(entry, part)
        case spaces.Discrete():
            yield np.asarray(batch, dtype=np.int64) - int(space.start)
        case spaces.MultiDiscrete():
            columns = np.asarray(batch, dtype=np.int64).reshape(len(batch), -1) - space.start.reshape(-1)
            yield from np.ascontiguousarray(columns.T)
        case _:
            yield np.ascontiguousarray(batch, dtype=space.dtype)
