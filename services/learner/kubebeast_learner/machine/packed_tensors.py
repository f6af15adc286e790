"""Tensors that are copied together: between host and device by one copy, within a device by one for each dtype.

The host's side are NumPy arrays: every call of PyTorch gives the interpreter's lock away, and has to wait for it again
while another thread computes.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_ALIGNMENT = 256
"""Bytes to which tensors are aligned, as the device's own allocator does."""

Layout = tuple[torch.dtype, Sequence[int]]
"""Dtype and shape of a tensor."""


class PackedTensors:
    """Several tensors in one block of pinned host memory and one of the device; both begin as zeros."""

    def __init__(self, layouts: Sequence[Layout], device: torch.device) -> None:
        size = _size_of(layouts)
        self._on_host = torch.zeros(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._on_device = torch.zeros(size, dtype=torch.uint8, device=device)
        self.host = _arrays(self._on_host, layouts)
        self.device = _tensors(self._on_device, layouts)

    def start_upload(self) -> None:
        """Starts the copy to the device, on the current stream."""
        self._on_device.copy_(self._on_host, non_blocking=True)

    def start_download(self) -> None:
        """Starts the copy to the host, on the current stream; `host` is complete once the stream has done it."""
        self._on_host.copy_(self._on_device, non_blocking=True)


def upload_together(sources: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Returns C-contiguous copies of tensors on the CPU, in one block of the device, by one asynchronous copy of pinned
    memory on the current stream.
    """
    layouts = [(each.dtype, each.shape) for each in sources]
    packed = torch.empty(_size_of(layouts), dtype=torch.uint8, pin_memory=device.type == "cuda")
    for mine, source in zip(_arrays(packed, layouts), sources, strict=True):
        np.copyto(mine, source.numpy())
    # On a CPU, `to` returns its argument.
    return _tensors(packed.to(device, non_blocking=True), layouts)


@torch.no_grad()
def copy_together(targets: Sequence[Tensor], sources: Sequence[Tensor], *, non_blocking: bool) -> None:
    """Copies tensors into others of the same shapes.

    PyTorch copies a list by one kernel if all sources have one dtype, and all targets; otherwise one by one.
    """
    lists: dict[tuple[torch.dtype, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        into, of = lists.setdefault((target.dtype, source.dtype), ([], []))
        into.append(target)
        of.append(source)
    for into, of in lists.values():
        torch._foreach_copy_(into, of, non_blocking=non_blocking)


def _arrays(block: Tensor, layouts: Sequence[Layout]) -> list[NDArray[np.generic]]:
    dtypes = {dtype: torch.empty(0, dtype=dtype).numpy().dtype for dtype in {dtype for dtype, _ in layouts}}
    data = block.numpy()
    return [
        data[start : start + _num_bytes((dtype, shape))].view(dtypes[dtype]).reshape(shape)
        for start, (dtype, shape) in zip(_starts(layouts), layouts, strict=False)
    ]


def _tensors(block: Tensor, layouts: Sequence[Layout]) -> list[Tensor]:
    blocks = {dtype: block.view(dtype) for dtype in {dtype for dtype, _ in layouts}}
    return [
        torch.as_strided(blocks[dtype], tuple(shape), _strides(shape), start // dtype.itemsize)
        for start, (dtype, shape) in zip(_starts(layouts), layouts, strict=False)
    ]


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a C-contiguous tensor, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _starts(layouts: Sequence[Layout]) -> list[int]:
    """Returns the first byte of each tensor in the block, and the size of the block."""
    return list(itertools.accumulate(map(_aligned_size, layouts), initial=0))


def _size_of(layouts: Sequence[Layout]) -> int:
    return _starts(layouts)[-1]


def _aligned_size(layout: Layout) -> int:
    return -(-_num_bytes(layout) // _ALIGNMENT) * _ALIGNMENT


def _num_bytes(layout: Layout) -> int:
    dtype, shape = layout
    return dtype.itemsize * math.prod(shape)
