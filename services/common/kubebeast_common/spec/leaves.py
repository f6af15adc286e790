"""Leaves: the flat, ordered form of the structures that observations and actions have on the wire."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from kubebeast_common.spec.limits import MAX_FRAME_STACK, MAX_PATH_BYTES
from kubebeast_common.text import printable

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float32", "float64", "bool")
"""Dtypes of leaves, as in kubebeast.v1.DType."""
MAX_ELEMENTS = 2**31
"""Most elements of a leaf's row, and most categories of a leaf: no more than a message carries."""


class LeafSpec(Protocol):
    """Shape and dtype of one leaf of an observation or action structure; kubebeast_native.LeafSpec is one."""

    @property
    def path(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def frame_stack(self) -> int: ...
    @property
    def num_categories(self) -> int: ...
    @property
    def bounded(self) -> bool:
        """True for an action leaf of numbers in [-1, 1]."""

    @property
    def is_action_mask(self) -> bool:
        """True for an observation leaf, bool [n], of allowed categories: those of all action leaves, in order."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """`shape`, or `(frame_stack, *shape)` when frame_stack > 1."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Shape and dtype of one leaf of an observation or action structure (kubebeast.v1.LeafSpec)."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    frame_stack: int = 1
    """If above 1, the number of frames of `shape` in a row, oldest first."""
    num_categories: int = 0
    """If above 0, the number of categories, 0 to num_categories - 1."""
    bounded: bool = False
    """True for an action leaf of numbers in [-1, 1]."""
    is_action_mask: bool = False
    """True for the observation leaf that marks the allowed categories of the action leaves."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """`shape`, or `(frame_stack, *shape)` when frame_stack > 1."""
        return (self.frame_stack, *self.shape) if self.frame_stack > 1 else self.shape

    @classmethod
    def of(cls, leaf: "LeafSpec") -> "Leaf":
        """Copies any LeafSpec."""
        values = {field.name: getattr(leaf, field.name) for field in fields(cls)}
        return cls(**{**values, "shape": tuple(leaf.shape), "frame_stack": max(1, leaf.frame_stack)})

    @classmethod
    def from_plain(cls, plain: object) -> "Leaf":
        """Creates a leaf from its fields by name. Raises ValueError if one is missing, unknown or invalid."""
        if not isinstance(plain, Mapping):
            raise ValueError(f"a leaf is {plain!r:.100}, not a mapping")
        leaf: dict[str, Any] = {"bounded": False, "is_action_mask": False, **plain}
        if wrong := leaf.keys() ^ {field.name for field in fields(cls)}:
            raise ValueError(f"a leaf lacks or has {', '.join(sorted(map(str, wrong)))}")
        shape = leaf["shape"]
        is_shape = isinstance(shape, (list, tuple)) and all(_is_count(size, MAX_ELEMENTS) for size in shape)
        for name, is_right in {
            "path": isinstance(leaf["path"], str),
            "dtype": isinstance(leaf["dtype"], str) and leaf["dtype"] in DTYPES,
            "shape": is_shape,
            "frame_stack": _is_count(leaf["frame_stack"], MAX_FRAME_STACK),
            "num_categories": _is_count(leaf["num_categories"], MAX_ELEMENTS),
            "bounded": isinstance(leaf["bounded"], bool),
            "is_action_mask": isinstance(leaf["is_action_mask"], bool),
        }.items():
            if not is_right:
                raise ValueError(f"a leaf has {name} {leaf[name]!r:.100}")
        made = cls(**{**leaf, "shape": tuple(shape)})
        if math.prod(made.row_shape) > MAX_ELEMENTS:
            raise ValueError(f"a leaf has shape {list(made.row_shape)!r:.100}, more than {MAX_ELEMENTS} elements")
        return made

    def __str__(self) -> str:
        parts = [f'"{printable(self.path, MAX_PATH_BYTES)}"' if self.path else "", self.dtype, str(list(self.shape))]
        parts += [f"stack {self.frame_stack}"] * (self.frame_stack > 1)
        parts += [f"{self.num_categories} categories"] * (self.num_categories > 0)
        parts += ["bounded"] * self.bounded
        parts += ["action mask"] * self.is_action_mask
        return " ".join(filter(None, parts))


def describe_leaf(leaf: LeafSpec) -> str:
    """Returns a description for messages: "image" (uint8 [84, 84])."""
    kind = f", {leaf.num_categories} categories" if leaf.num_categories else ""
    return f'"{printable(leaf.path, MAX_PATH_BYTES)}" ({leaf.dtype} {list(leaf.row_shape)}{kind})'


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
