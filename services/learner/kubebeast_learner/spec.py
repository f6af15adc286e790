"""Specification of an environment's leaves, as known before there is a model."""

from typing import Protocol

from kubebeast_common.text import printable

MAX_PATH_CHARS = 255
"""Most characters of a leaf's path in a message; a peer may have sent the path."""


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


class ModelSpecError(ValueError):
    """Error for a model that does not fit an environment or breaks its contract; the message names the remedy."""


def describe_leaf(leaf: LeafSpec) -> str:
    """Returns a description for messages: "image" (uint8 [84, 84])."""
    kind = f", {leaf.num_categories} categories" if leaf.num_categories else ""
    return f'"{printable(leaf.path, MAX_PATH_CHARS)}" ({leaf.dtype} {list(leaf.row_shape)}{kind})'
