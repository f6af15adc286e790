"""What is known of an environment before there is a model: the shapes of its leaves."""

from typing import Protocol


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
        """Of an action leaf of numbers: they lie in [-1, 1]."""

    @property
    def is_action_mask(self) -> bool:
        """Of an observation leaf, bool [n]: which categories may be chosen, those of all action leaves in order."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """`shape`, or `(frame_stack, *shape)` when frame_stack > 1."""


class ModelSpecError(ValueError):
    """A model and an environment do not fit, or a model breaks its contract; the message says what to change."""


def describe_leaf(leaf: LeafSpec) -> str:
    """For people: "image" (uint8 [84, 84])."""
    kind = f", {leaf.num_categories} categories" if leaf.num_categories else ""
    return f'"{leaf.path}" ({leaf.dtype} {list(leaf.row_shape)}{kind})'
