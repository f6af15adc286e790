"""Tensors that travel between host and device together, by one copy."""

import math
from collections.abc import Sequence

import torch

_ALIGNMENT = 256
"""Bytes to which tensors are aligned, as the device's own allocator does."""


class PackedTensors:
    """Several tensors in one block of pinned host memory and one of the device; both begin as zeros."""

    def __init__(self, layouts: Sequence[tuple[torch.dtype, Sequence[int]]], device: torch.device) -> None:
        """layouts: dtype and shape of each tensor."""
        sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in layouts]
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
        self._on_host = torch.zeros(starts[-1], dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._on_device = torch.zeros(starts[-1], dtype=torch.uint8, device=device)
        spans = list(zip(starts, sizes, layouts, strict=False))
        self.host, self.device = (
            [block[start : start + size].view(dtype).view(*shape) for start, size, (dtype, shape) in spans]
            for block in (self._on_host, self._on_device)
        )

    def start_upload(self) -> None:
        """Starts the copy to the device, on the current stream."""
        self._on_device.copy_(self._on_host, non_blocking=True)

    def start_download(self) -> None:
        """Starts the copy to the host, on the current stream; `host` is complete once the stream has done it."""
        self._on_host.copy_(self._on_device, non_blocking=True)
