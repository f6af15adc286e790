"""Dtypes, sizes and valid elements of leaves."""

import math
from typing import Any

import lz4.block
import numpy as np
from numpy.typing import NDArray

from kubebeast_conformance.contract.rows import Row
from kubebeast_conformance.contract.violation import Place, require
from kubebeast_protos.v1 import actor_pool_pb2 as pb


def dtype_of(spec: pb.LeafSpec) -> np.dtype[Any]:
    """Returns the little-endian dtype. Raises KeyError for DTYPE_INVALID and unknown numbers."""
    if spec.dtype == pb.DTYPE_INVALID:
        raise KeyError(spec.dtype)
    try:
        name = pb.DType.Name(spec.dtype)
    except ValueError:
        raise KeyError(spec.dtype) from None
    return np.dtype(name.removeprefix("DTYPE_").lower()).newbyteorder("<")


def frame_elements(spec: pb.LeafSpec) -> int:
    """Returns the number of elements of one frame, or of one row if there is no stack."""
    return math.prod(spec.shape)


def frames_of(spec: pb.LeafSpec, rows: list[Row]) -> list[int]:
    """Returns the number of frames of each row."""
    return [max(spec.frame_stack, 1) if row.whole_stack else 1 for row in rows]


def num_choices(hello: pb.Hello) -> int:
    """Returns the number of elements per row of an action mask."""
    return sum(leaf.num_categories * math.prod(leaf.shape) for leaf in hello.action if leaf.num_categories)


def decompressed(block: bytes, size: int, place: str) -> bytes:
    """Decompresses an LZ4 block of exactly `size` bytes. Raises ViolationError."""
    reason = f"no LZ4 block of {size} bytes"
    try:
        plain: bytes = lz4.block.decompress(block, uncompressed_size=size)
    except lz4.block.LZ4BlockError as error:
        require(False, "O4", place, f"{reason}: {error}")
        raise
    require(len(plain) == size, "O4", place, f"{reason}: {len(plain)}")
    return plain


def check_elements(elements: NDArray[Any], spec: pb.LeafSpec, place: str, finite: str, in_range: str) -> None:
    """Raises ViolationError of the rule `finite` or `in_range` for the first invalid element."""
    if elements.dtype.kind == "f":
        with np.errstate(over="ignore"):
            fit = np.isfinite(elements.astype(np.float32))
        rule, expected = finite, "is not finite as float32"
    elif spec.num_categories or spec.dtype == pb.DTYPE_BOOL:
        limit = spec.num_categories or 2
        fit = (elements >= 0) & (elements < limit)
        rule, expected = in_range, f"is not 0 to {limit - 1}"
    else:
        return
    if not fit.all():
        first = int(np.argmin(fit))
        require(False, rule, Place(place, first, elements.dtype.itemsize), f"{elements[first]} {expected}")
