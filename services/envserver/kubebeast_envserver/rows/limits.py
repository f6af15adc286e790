"""Limits of the size of rows, checked before memory is allocated."""

import math
from collections.abc import Sequence

import numpy as np

from kubebeast_common.spec.leaves import Leaf
from kubebeast_common.spec.limits import (
    DEFAULT_MESSAGE_MIB,
    MAX_CATEGORIES,
    MAX_DIMS,
    MAX_FRAME_STACK,
    MAX_LEAVES,
    MAX_MESSAGE_BYTES,
    MAX_PATH_BYTES,
)
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError


def check_limits(observation: Sequence[Leaf], action: Sequence[Leaf], num_envs: int) -> None:
    """Raises UnsupportedSpaceError, with the leaf, its size and the limit, if rows are too large to be sent."""
    for kind, leaves in (("observation", observation), ("action", action)):
        _check_number(kind, len(leaves))
        for leaf in leaves:
            _check_leaf(kind, leaf)
    _check_categories("observation", observation, sum(leaf.num_categories for leaf in observation))
    _check_categories("action", action, sum(map(num_logits, action)))
    row_bytes = bytes_of_row(observation, action)
    if row_bytes * num_envs > MAX_MESSAGE_BYTES:
        raise UnsupportedSpaceError(
            f"num_envs = {num_envs}: rows of {row_bytes:,} bytes each are {row_bytes * num_envs:,} bytes, and a "
            f"message holds at most {MAX_MESSAGE_BYTES:,}; the largest leaf is {_largest([*observation, *action])}"
        )


def bytes_of_row(observation: Sequence[Leaf], action: Sequence[Leaf]) -> int:
    """Returns the bytes that a learner reserves for one environment: whole stacks, uncompressed, and the action."""
    return sum(map(_row_bytes, [*observation, *action]))


def message_violation(
    observation: Sequence[Leaf], action: Sequence[Leaf], max_message_mib: int = DEFAULT_MESSAGE_MIB
) -> str | None:
    """Returns the reason that a learner with this max_message_mib rejects even a stream of one environment, or None."""
    row_bytes = bytes_of_row(observation, action)
    if row_bytes <= max_message_mib << 20:
        return None
    return (
        f"a row has {row_bytes:,} bytes, more than a message of max_message_mib = {max_message_mib}; the largest leaf "
        f"is {_largest([*observation, *action])}: make it smaller with a wrapper, or give the learner "
        f"--max-message-mib {-(-row_bytes >> 20)} or more"
    )


def num_logits(leaf: Leaf) -> int:
    """Returns the number of categories in all choices of an action leaf; 0 for numbers."""
    return math.prod(leaf.shape) * leaf.num_categories


def _check_number(kind: str, num_leaves: int) -> None:
    if num_leaves > MAX_LEAVES:
        raise UnsupportedSpaceError(f"the {kind} has {num_leaves} leaves, at most {MAX_LEAVES} can be sent")


def _check_leaf(kind: str, leaf: Leaf) -> None:
    problem = None
    path_bytes = len(leaf.path.encode(errors="surrogatepass"))
    if path_bytes > MAX_PATH_BYTES:
        problem = f"its path has {path_bytes} bytes, at most {MAX_PATH_BYTES} can be sent: shorten its keys"
    elif len(leaf.shape) > MAX_DIMS:
        problem = f"it has {len(leaf.shape)} dimensions, at most {MAX_DIMS} can be sent"
    elif leaf.frame_stack > MAX_FRAME_STACK:
        problem = f"it is a stack of {leaf.frame_stack} frames, at most {MAX_FRAME_STACK} can be sent"
    elif _row_bytes(leaf) > MAX_MESSAGE_BYTES:
        problem = f"a row of it has {_row_bytes(leaf):,} bytes, a message at most {MAX_MESSAGE_BYTES:,}"
    if problem is not None:
        raise UnsupportedSpaceError(f"the {kind}{_place(leaf)}: {problem}")


def _check_categories(kind: str, leaves: Sequence[Leaf], number: int) -> None:
    if number > MAX_CATEGORIES:
        leaf = max(leaves, key=lambda each: each.num_categories)
        most = f", {leaf.num_categories:,} of them{_place(leaf)}" * (len(leaves) > 1)
        raise UnsupportedSpaceError(
            f"the {kind} has {number:,} categories{most}, and at most {MAX_CATEGORIES:,} can be learnt: hash them to "
            "fewer, or make numbers (Box) of them"
        )


def _place(leaf: Leaf) -> str:
    path = leaf.path if len(leaf.path) <= 60 else f"{leaf.path[:57]}..."
    return f" at {path!r}" if path else ""


def _row_bytes(leaf: Leaf) -> int:
    return math.prod(leaf.row_shape) * np.dtype(leaf.dtype).itemsize


def _largest(leaves: Sequence[Leaf]) -> str:
    leaf = max(leaves, key=_row_bytes)
    return f"{leaf.dtype} {list(leaf.row_shape)}{_place(leaf)}"
