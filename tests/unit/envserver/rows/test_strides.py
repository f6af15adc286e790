"""Arrays of any memory layout are sent by their values: environments may return any view."""

from collections.abc import Callable
from typing import Any

import lz4.block
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.rows import StepRows
from kubebeast_envserver.rows.spaces import flatten
from kubebeast_envserver.stream.codec import LZ4_MIN_BYTES, encode_observations
from kubebeast_protos.v1 import actor_pool_pb2 as pb

B, H, W = 2, 40, 30
Layout = Callable[[NDArray[Any]], NDArray[Any]]


def every_second_column(array: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(array, 2, axis=-1)[..., ::2]


def mirrored(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def swapped_axes(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)


layouts = pytest.mark.parametrize("layout", [np.asfortranarray, every_second_column, mirrored, swapped_axes])


def image(dtype: str) -> NDArray[Any]:
    return np.arange(B * H * W).reshape(B, H, W).astype(dtype)


def encoded(array: NDArray[Any], compression: pb.Compression) -> bytes:
    no = np.zeros(B, np.bool_)
    rows = StepRows([array], np.zeros(B, np.float32), no, no, no, [])
    leaf = Leaf("", str(array.dtype), array.shape[1:])
    return encode_observations(0, rows, [leaf], [compression]).observations.leaves[0]


@layouts
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_any_layout_travels_as_the_same_bytes(layout: Layout, dtype: str) -> None:
    view = layout(image(dtype))
    assert not view.flags.c_contiguous
    little_endian = image(dtype).astype(view.dtype.newbyteorder("<"))
    assert encoded(view, pb.COMPRESSION_NONE) == little_endian.tobytes()


@layouts
def test_any_layout_is_compressed_to_the_same_bytes(layout: Layout) -> None:
    assert H * W >= LZ4_MIN_BYTES
    view = layout(image("uint8"))
    assert not view.flags.c_contiguous
    block = encoded(view, pb.COMPRESSION_LZ4)
    assert lz4.block.decompress(block, uncompressed_size=B * H * W) == image("uint8").tobytes()


@layouts
def test_any_layout_of_a_structure_is_flattened_to_contiguous_leaves(layout: Layout) -> None:
    space = spaces.Dict(
        {"screen": spaces.Box(0, 255, (H, W), np.uint8), "more": spaces.Tuple([spaces.Box(-1, 1, (H, W), np.float32)])}
    )
    batch = {"screen": layout(image("uint8")), "more": (layout(image("float32")),)}
    more, screen = flatten(space, batch)
    assert screen.flags.c_contiguous and more.flags.c_contiguous
    np.testing.assert_array_equal(screen, image("uint8"))
    np.testing.assert_array_equal(more, image("float32"))
