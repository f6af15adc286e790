"""Running statistics of single leaves, which give a network's inputs mean 0 and variance 1 in any units."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.machine.autocast import compute_dtype
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.ranks.group import sum_over_ranks

LIMIT = 10.0
"""Limit at which normalized numbers are clipped: rare extremes, and first rows, while the statistics are poor."""
_EPSILON = 1e-8
"""Added to the variance, so that a number that never changes becomes 0."""
_BYTES_EPSILON = (255.0 / LIMIT) ** 2
"""The same for bytes; large enough that no byte is ever beyond LIMIT."""
_MOST_FRAMES = 256
"""Frames of a batch, roughly, that are added to the statistics of pixels: successive ones are alike."""
_BLOCK = 1 << 18
"""Numbers that stay in the cache of a CPU's core from one operation to the next."""
_EXACT_IN_FLOAT32 = (torch.float32, torch.uint8, torch.int8, torch.int16)


class Scale(nn.Module):
    """A scale of one leaf, which training data determine, in buffers."""

    goes_on: ClassVar[bool] = True
    """False if rows that come after `has_begun` change nothing."""

    @property
    @abstractmethod
    def has_begun(self) -> Tensor:
        """Bool scalar: True once rows were added."""

    @abstractmethod
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """Adds the rows [T, B, *shape] of all ranks with a true `counted`, bool [T, B]; others may hold anything."""


class RunningMoments(Scale):
    """Mean and variance of each number of one leaf over all rows so far, in buffers, which checkpoints contain.

    Merged batch by batch (Chan et al. 1983, https://doi.org/10.1080/00031305.1983.10483115), without loss of precision
    after any number of rows. Numbers beyond LARGEST are left out, because a single one would hide all others:
    sentinels such as the largest float32 are not measurements.
    """

    mean: Tensor
    """float64 [*shape]: float32 loses what further rows add to the mean of many."""
    variance: Tensor
    """float64 [*shape]."""
    count: Tensor
    """float64 scalar: number of rows."""
    left_out: Tensor
    """float64 [*shape]: number of rows in which each number was left out."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(tuple(shape), dtype=torch.float64))
        self.register_buffer("variance", torch.ones(tuple(shape), dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("left_out", torch.zeros(tuple(shape), dtype=torch.float64))

    @property
    def has_begun(self) -> Tensor:
        """See `Scale.has_begun`."""
        return self.count > 0

    def forward(self, rows: Tensor) -> Tensor:
        """Normalizes [T, B, *shape] to float32 in [-LIMIT, LIMIT]."""
        rows = exact(rows)
        centred = (rows - self.mean.to(rows.dtype)).float()
        return (centred * (self.variance + _EPSILON).rsqrt().float()).clamp(-LIMIT, LIMIT)

    @torch.no_grad()
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """See `Scale.add`."""
        rows = exact(rows)
        where = counted.view(*counted.shape, *[1] * self.mean.ndim) & (rows.abs() <= LARGEST)
        rows = rows.masked_fill(~where, 0.0)
        # Sums are float64: many large squares exceed float32.
        num_rows = sum_over_ranks(counted.sum(dtype=torch.float64))
        num_added, added = sum_over_ranks(torch.stack([_sum(where), _sum(rows)]))
        mean = added / num_added.clamp(min=1)
        squares = (rows - mean.to(rows.dtype)).masked_fill(~where, 0.0).square()
        variance = sum_over_ranks(_sum(squares)) / num_added.clamp(min=1)
        share = num_added / (self.count - self.left_out + num_added).clamp(min=1)
        difference = mean - self.mean
        merged = self.variance + share * (variance - self.variance) + share * (1.0 - share) * difference.square()
        self.variance.copy_(merged)
        self.mean.copy_(self.mean + share * difference)
        self.count.add_(num_rows)
        self.left_out.add_(num_rows - num_added)

    @torch.no_grad()
    def limit_count(self, num_rows: int) -> None:
        """Gives the statistics the weight of at most `num_rows` rows, so that rows to come soon outweigh them."""
        share = num_rows / self.count.clamp(min=num_rows)
        self.count.mul_(share)
        self.left_out.mul_(share)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Accepts older checkpoints, which have no `left_out`."""
        state_dict.setdefault(prefix + "left_out", torch.zeros_like(self.left_out))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


class PixelMoments(RunningMoments):
    """Moments of each pixel of an image of bytes, shared by the frames of a stack: a background that never changes
    becomes 0, and what moves stands out, as in Burda et al. 2018 (arXiv:1810.12894, section 2.4).
    """

    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf.shape)
        self._has_stack = leaf.frame_stack > 1

    def forward(self, rows: Tensor) -> Tensor:
        """Normalizes uint8 [T, B, *row_shape] to [-LIMIT, LIMIT], in the memory layout of the rows.

        Computes in float32; the result is bfloat16 if convolutions are.
        """
        factor = (self.variance.float() + _BYTES_EPSILON).rsqrt()
        shift = -self.mean.float() * factor
        if self._has_stack and rows.ndim == 5 and rows.stride(2) == 1:
            # Frames are innermost in memory, so numbers of a frame would be read in steps of one.
            shift, factor = (_interleaved(each.expand(rows.shape[2:])) for each in (shift, factor))
        dtype = compute_dtype(factor)
        if rows.device.type != "cpu" or torch.compiler.is_compiling():  # kernels there make all rows at once
            return torch.addcmul(shift, rows.float(), factor).to(dtype)
        flat = rows.flatten(0, 1)
        normalised = torch.empty_like(flat, dtype=dtype)
        num_rows = max(1, _BLOCK * torch.get_num_threads() // max(1, rows.shape[2:].numel()))
        scratch = torch.empty_like(flat[:num_rows], dtype=torch.float32)
        for begin in range(0, len(flat), num_rows):
            block = flat[begin : begin + num_rows]
            floats = scratch[: len(block)].copy_(block)
            normalised[begin : begin + num_rows] = torch.addcmul(shift, floats, factor, out=floats)
        return normalised.view(rows.shape)

    def add(self, rows: Tensor, counted: Tensor) -> None:
        """See `RunningMoments.add`. Adds the newest frames of some rows, evenly spaced in time."""
        spacing = max(1, counted.numel() // _MOST_FRAMES)
        frames = rows[:, :, -1] if self._has_stack else rows
        super().add(frames[::spacing], counted[::spacing])


def _interleaved(row: Tensor) -> Tensor:
    """Returns [k, H, W] with the frames innermost in memory."""
    return row.unsqueeze(0).contiguous(memory_format=torch.channels_last).squeeze(0)


def exact(rows: Tensor) -> Tensor:
    """Converts to float32, or to float64 if float32 cannot tell apart all numbers of that type, such as clocks."""
    return rows.float() if rows.dtype in _EXACT_IN_FLOAT32 else rows.double()


def _sum(numbers: Tensor) -> Tensor:
    """Sums [T, B, *shape] to float64 [*shape]."""
    return numbers.sum(dim=(0, 1), dtype=torch.float64)
