"""Checks of action masks, and of chosen categories against them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_conformance.contract.leaves import dtype_of, frame_elements
from kubebeast_conformance.contract.violation import require
from kubebeast_protos.v1 import actor_pool_pb2 as pb


def check_mask(mask: NDArray[Any], hello: pb.Hello, place: str) -> None:
    """Raises ViolationError if the mask of a row leaves a choice without an allowed category."""
    for choice, part in enumerate(_choices(mask, hello)):
        require(bool(part.any()), "O7", place, f"choice {choice} has no allowed category")


def check_choices(actions: list[bytes], mask: NDArray[Any], row: int, hello: pb.Hello) -> None:
    """Raises ViolationError if row `row` of the actions has a forbidden category. Choices that allow none pass."""
    parts = _choices(mask, hello)
    for i, leaf in enumerate(hello.action):
        if not leaf.num_categories:
            continue
        count = frame_elements(leaf)
        chosen = np.frombuffer(actions[i], dtype_of(leaf))[row * count : (row + 1) * count]
        for category in chosen:
            part = next(parts)
            allowed = bool(part[int(category)]) or not part.any()
            require(allowed, "A5", f"actions.leaves[{i}]", f"row {row} has category {category}, which its mask forbids")


def _choices(mask: NDArray[Any], hello: pb.Hello) -> Iterator[NDArray[Any]]:
    """Yields the part of the mask for each element of each action leaf with categories."""
    start = 0
    for leaf in hello.action:
        for _ in range(frame_elements(leaf) if leaf.num_categories else 0):
            yield mask[start : start + leaf.num_categories]
            start += leaf.num_categories
