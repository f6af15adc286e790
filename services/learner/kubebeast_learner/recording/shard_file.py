"""Content of a shard: arrays of its batches, compressed where that makes them smaller, behind checksums."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lz4.block
import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import DTYPES
from kubebeast_learner.recording.shards import Batch, Header, RecordingError
from kubebeast_runs.weights import read_metadata

COMPRESSED = ".lz4"
"""End of the name of an array that is stored as an LZ4 block, uint8 [n]."""
LEAST_BYTES = 256
"""Size from which arrays are compressed."""
_MOST_RATIO = 255
"""Bound of the ratio of an LZ4 block: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md."""

Stored = Mapping[str, NDArray[Any]]


def pack(batch: Batch, arrays: Mapping[str, NDArray[Any]]) -> tuple[Batch, Stored]:
    """Returns the batch with the forms and the checksum of what is stored, and the arrays to store."""
    stored: dict[str, NDArray[Any]] = {}
    compressed: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, array in arrays.items():
        block = lz4.block.compress(array.data.cast("B"), store_size=False) if array.nbytes >= LEAST_BYTES else b""
        if block and len(block) < array.nbytes:
            compressed[name] = array.dtype.name, array.shape
            stored[name + COMPRESSED] = np.frombuffer(block, np.uint8)
        else:
            stored[name] = array
    return replace(batch, compressed=compressed, crc32=_checksum(stored)), stored


def num_bytes(stored: Stored) -> int:
    return sum(array.nbytes for array in stored.values())


def encode(header: Header, content: Sequence[Stored]) -> bytes:
    """Returns a shard with the header's batches; `content` has the results of `pack`, in the same order."""
    tensors = {f"{place}.{name}": array for place, stored in enumerate(content) for name, array in stored.items()}
    return safetensors.numpy.save(tensors, header.to_metadata())


def read_header(path: Path) -> Header:
    """Returns the header of a shard, without its arrays. Raises RecordingError if the file has none."""
    try:
        with safetensors.safe_open(path, framework="np"):  # checks the sizes and places of all tensors
            return Header.from_metadata(read_metadata(path))
    except (ValueError, OSError, safetensors.SafetensorError) as error:
        raise unreadable(path, error) from error


def read_batch(path: Path, place: int, batch: Batch) -> dict[str, NDArray[Any]]:
    """Returns the arrays of the batch at `place` in a shard, writable. Raises RecordingError if one is damaged."""
    prefix = f"{place}."
    try:
        with safetensors.safe_open(path, framework="np") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - not a mapping
            stored = {name.removeprefix(prefix): file.get_tensor(name) for name in names}
        if _checksum(stored) != batch.crc32:
            raise ValueError(f"the checksum of the batch of update {batch.update} is wrong")
        return {name.removesuffix(COMPRESSED): _unpacked(name, array, batch) for name, array in stored.items()}
    except (ValueError, OSError, safetensors.SafetensorError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> RecordingError:
    """Returns the error for a shard that cannot be used."""
    return RecordingError(f"{path}: {str(error).strip() or type(error).__name__}")


def _checksum(stored: Stored) -> int:
    crc = 0
    for name in sorted(stored):
        crc = zlib.crc32(np.ascontiguousarray(stored[name]).reshape(-1).view(np.uint8).data, crc)
    return crc


def _unpacked(name: str, array: NDArray[Any], batch: Batch) -> NDArray[Any]:
    """Returns an array as it was packed. Raises ValueError before it takes memory that the block cannot fill."""
    plain = name.removesuffix(COMPRESSED)
    if plain == name:
        return array
    dtype, shape = batch.compressed.get(plain, ("", ()))
    if dtype not in DTYPES or array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"{name} is no compressed array")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > _MOST_RATIO * array.nbytes:
        raise ValueError(f"{name} has {array.nbytes} bytes, too few for {dtype} {list(shape)}")
    try:
        content = lz4.block.decompress(array, uncompressed_size=size, return_bytearray=True)
    except (lz4.block.LZ4BlockError, MemoryError) as error:
        raise ValueError(f"{name}: {error}") from error
    if len(content) != size:
        raise ValueError(f"{name} has {len(content)} bytes, not the {size} of {dtype} {list(shape)}")
    return np.frombuffer(content, dtype).reshape(shape)
