"""Conversion of gymnasium spaces to leaves: the flat, ordered form of structures on the wire (LeafSpec).

Order: Dict entries by sorted key, Tuple and MultiDiscrete entries by index; a path joins keys and indices with dots.

Models divide bytes by 255. If the bounds of a Box of bytes are smaller, it travels as float32, divided by its bounds.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import DTYPES, Leaf
from kubebeast_common.spec.limits import MAX_LEAVES

Array = NDArray[Any]


class UnsupportedSpaceError(ValueError):
    """A space that cannot be sent. The message contains its place, its kind and a remedy."""


def leaves_of(space: spaces.Space[Any], box_leaf: Callable[[str, spaces.Box], Leaf] | None = None) -> list[Leaf]:
    """Returns the leaves of one environment's space, in wire order. Raises UnsupportedSpaceError.

    `box_leaf` makes the leaf of a Box from its path and the Box; by default, one for the values of the Box.
    """
    leaves = list(islice(_leaves(space, (), box_leaf or _box_leaf), MAX_LEAVES + 1))
    if len(leaves) > MAX_LEAVES:
        raise UnsupportedSpaceError(
            f"the space has more than {MAX_LEAVES} leaves, the maximum: join entries to a Box with a wrapper"
        )
    paths: set[str] = set()
    for path in (leaf.path for leaf in leaves):
        if path in paths:
            raise UnsupportedSpaceError(f"two leaves share the path {path!r}: rename a key of the Dict space")
        paths.add(path)
    return leaves


def flatten(space: spaces.Space[Any], batch: Any) -> list[Array]:
    """Converts a batch of B elements, as in a gymnasium vector env, to one C-contiguous array [B, *shape] per leaf."""
    return list(_flatten(space, batch))


def _leaves(
    space: spaces.Space[Any], path: tuple[str, ...], box_leaf: Callable[[str, spaces.Box], Leaf]
) -> Iterator[Leaf]:
    name = ".".join(path)
    match space:
        case spaces.Dict() | spaces.Tuple() if not space.spaces:
            raise UnsupportedSpaceError(f"{_where(name)} {space} has no entries, so nothing that could be sent")
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
            if space.nvec.size > MAX_LEAVES:
                raise UnsupportedSpaceError(
                    f"{_where(name)} a MultiDiscrete space of {space.nvec.size:,} entries is as many leaves, at most "
                    f"{MAX_LEAVES} can be sent: turn it into a Box of whole numbers or a MultiBinary with a wrapper"
                )
            for index, n in enumerate(space.nvec.flat):
                yield Leaf(".".join((*path, str(index))), "int64", (), num_categories=int(n))
        case spaces.MultiBinary():
            yield Leaf(name, "int8", space.shape, num_categories=2)
        case spaces.Box():
            yield box_leaf(name, space)
        case _:
            raise UnsupportedSpaceError(f"{_where(name)} {_unsupported(space)}")


def byte_bounds(space: spaces.Box) -> NDArray[np.float32] | None:
    """Returns the divisors of a Box of bytes that are all below 255, float32 [*shape]; None for any other Box."""
    if space.dtype != np.uint8 or space.high.size == 0 or space.high.max() == 255:
        return None
    return np.maximum(space.high, 1).astype(np.float32)


def _box_leaf(name: str, space: spaces.Box) -> Leaf:
    if str(space.dtype) not in DTYPES:
        raise UnsupportedSpaceError(
            f"{_where(name)} {space} has the dtype {space.dtype}, which cannot be sent: convert it to one of "
            f"{', '.join(DTYPES)} with a wrapper (gymnasium.wrappers.DtypeObservation)"
        )
    dtype = str(space.dtype) if byte_bounds(space) is None else "float32"
    return Leaf(name, dtype, space.shape)


def _unsupported(space: Any) -> str:
    """Returns the reason that an object is no supported space, and a remedy."""
    text = repr(space) if len(repr(space)) <= 200 else f"{repr(space)[:197]}..."
    kind = type(space)
    if isinstance(space, spaces.Space):
        return (
            f"{text} is a {kind.__name__} space, which has no fixed array form: turn it into Box, Discrete, "
            "MultiDiscrete, MultiBinary, Dict or Tuple with a wrapper"
        )
    if kind.__module__.partition(".")[0] == "gym":
        return (
            f"{text} is a space of gym ({kind.__module__}.{kind.__qualname__}), not of gymnasium: make it of "
            "gymnasium.spaces, or play the environment by gym: --env gym/ID"
        )
    return f"{text} ({kind.__module__}.{kind.__qualname__}) is no space of gymnasium: make it of gymnasium.spaces"


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
        case spaces.Box() if (bounds := byte_bounds(space)) is not None:
            yield np.ascontiguousarray(np.asarray(batch, dtype=np.float32) / bounds)
        case _:
            yield np.ascontiguousarray(batch, dtype=space.dtype)
