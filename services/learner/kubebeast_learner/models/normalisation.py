"""Running statistics of observations, which give a network's inputs mean 0 and variance 1 in any units."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.machine.autocast import compute_dtype
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.ranks.group import sum_over_ranks

LIMIT = 10.0
"""Limit at which normalized numbers are clipped: rare extremes, and first rows, while the statistics are poor."""
_EPSILON = 1e-4
"""Added to the variance, so that a number that never changes becomes 0."""
_BYTES_EPSILON = (255.0 / LIMIT) ** 2
"""The same for bytes; large enough that no byte is ever beyond LIMIT."""
_MOST_FRAMES = 256
"""Frames of a batch, roughly, that are added to the statistics of pixels: successive ones are alike."""
_BLOCK = 1 << 18
"""Numbers that stay in the cache of a CPU's core from one operation to the next."""


class RunningMoments(nn.Module):
    """Mean and variance of each number of one leaf over all rows so far, in buffers, which checkpoints contain.

    Merged batch by batch (Chan et al. 1983, https://doi.org/10.1080/00031305.1983.10483115), without loss of precision
    after any number of rows. Numbers beyond LARGEST are left out, because a single one would hide all others:
    sentinels such as the largest float32 are not measurements.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor
    """float64 scalar: number of rows."""
    left_out: Tensor
    """float64 [*shape]: number of rows in which each number was left out."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(tuple(shape)))
        self.register_buffer("variance", torch.ones(tuple(shape)))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("left_out", torch.zeros(tuple(shape), dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """Normalizes [T, B, *shape] to float32 in [-LIMIT, LIMIT]."""
        normalised = (rows.float() - self.mean) * (self.variance + _EPSILON).rsqrt()
        return normalised.clamp(-LIMIT, LIMIT)

    @torch.no_grad()
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """Adds the rows [T, B, *shape] of all ranks with a true `counted`, bool [T, B]; others may hold anything."""
        rows = rows.float()
        where = counted.view(*counted.shape, *[1] * self.mean.ndim) & (rows.abs() <= LARGEST)
        rows = rows.masked_fill(~where, 0.0)
        # Sums are float64: many large squares exceed float32.
        num_rows = sum_over_ranks(counted.sum(dtype=torch.float64))
        num_added, added = sum_over_ranks(torch.stack([_sum(where), _sum(rows)]))
        mean = added / num_added.clamp(min=1)
        squares = (rows - mean.float()).masked_fill(~where, 0.0).square()
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
        factor = (self.variance + _BYTES_EPSILON).rsqrt()
        shift = -self.mean * factor
        if self._has_stack and rows.ndim == 5 and rows.stride(2) == 1:
            # Frames are innermost in memory, so numbers of a frame would be read in steps of one.
            shift, factor = (_interleaved(each.expand(rows.shape[2:])) for each in (shift, factor))
        dtype = compute_dtype(self.mean)
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


class ObservationNormaliser(nn.Module):
    """Normalization of the leaves of numbers, of images of bytes, or of both; categories and masks stay unchanged."""

    def __init__(self, observation: Sequence[LeafSpec], *, numbers: bool = True, pixels: Collection[int] = ()) -> None:
        """Raises ModelSpecError if there is no leaf of numbers to normalize.

        Args:
            observation: All leaves.
            numbers: If set, leaves of numbers that are no images of bytes are normalized.
            pixels: Indices of the images of bytes that are normalized.
        """
        super().__init__()
        listed = list(map(describe_leaf, observation))
        moments: dict[int, RunningMoments] = {}
        if numbers:
            moments |= {i: RunningMoments(leaf.row_shape) for i, leaf in enumerate(observation) if is_number(leaf)}
            if not moments:
                problem = "normalise_observations = True: no leaf holds numbers that are no image of bytes"
                raise ModelSpecError(f"{problem}: {', '.join(listed)}")
        self.names = [listed[index] for index in moments]
        """Readable names of the leaves of numbers."""
        moments |= {index: PixelMoments(observation[index]) for index in pixels}
        self.leaves = nn.ModuleDict({str(index): each for index, each in moments.items()})

    def forward(self, observation: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Returns all leaves [T, B, *row_shape], the normalized ones as float32."""
        leaves = list(observation)
        for index, moments in self._moments():
            leaves[index] = moments(leaves[index])
        return tuple(leaves)

    def add(self, observation: Sequence[Tensor], counted: Tensor) -> None:
        """Adds rows [T, B, *row_shape] of all leaves with a true `counted`, bool [T, B]. Never called in acting."""
        for index, moments in self._moments():
            moments.add(observation[index], counted)

    def of_floats(self, observation: Sequence[Tensor]) -> list[Tensor]:
        """Returns the leaves of numbers, not normalized, in the order of `names`."""
        return [observation[index] for index, each in self._moments() if not isinstance(each, PixelMoments)]

    def _moments(self) -> Iterator[tuple[int, RunningMoments]]:
        """Yields the index and the moments of each normalized leaf."""
        for index, moments in self.leaves.items():
            assert isinstance(moments, RunningMoments)
            yield int(index), moments


def _interleaved(row: Tensor) -> Tensor:
    """Returns [k, H, W] with the frames innermost in memory."""
    return row.unsqueeze(0).contiguous(memory_format=torch.channels_last).squeeze(0)


def is_number(leaf: LeafSpec) -> bool:
    """Returns True for a leaf with numbers that are no categories and no image of bytes."""
    if leaf.num_categories > 0 or leaf.dtype == "bool":
        return False
    return leaf.dtype != "uint8" or len(leaf.row_shape) < 2


def _sum(numbers: Tensor) -> Tensor:
    """Sums [T, B, *shape] to float64 [*shape]."""
    return numbers.sum(dim=(0, 1), dtype=torch.float64)
