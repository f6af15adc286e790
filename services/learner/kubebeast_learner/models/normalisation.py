"""Running statistics of observations, which give a network's inputs mean 0 and variance 1 in any units."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.ranks.group import sum_over_ranks

LIMIT = 10.0
"""Limit at which normalized numbers are clipped: rare extremes, and first rows, while the statistics are poor."""
_EPSILON = 1e-4
"""Added to the variance, so that a number that never changes becomes 0."""


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

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Accepts older checkpoints, which have no `left_out`."""
        state_dict.setdefault(prefix + "left_out", torch.zeros_like(self.left_out))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


class ObservationNormaliser(nn.Module):
    """Normalization of the leaves of numbers; images of bytes, categories and masks stay unchanged."""

    def __init__(self, observation: Sequence[LeafSpec]) -> None:
        """Raises ModelSpecError if there is no leaf of numbers."""
        super().__init__()
        self.leaves = nn.ModuleDict(
            {
                str(index): RunningMoments(leaf.row_shape)
                for index, leaf in enumerate(observation)
                if _is_normalised(leaf)
            }
        )
        listed = list(map(describe_leaf, observation))
        self.names = [listed[int(index)] for index in self.leaves]
        """Readable names of the leaves of numbers."""
        if not self.leaves:
            raise ModelSpecError(
                f"normalise_observations = True: no leaf holds numbers that are no image of bytes: {', '.join(listed)}"
            )

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
        return [observation[index] for index, _ in self._moments()]

    def _moments(self) -> Iterator[tuple[int, RunningMoments]]:
        """Yields the index and the moments of each leaf of numbers."""
        for index, moments in self.leaves.items():
            assert isinstance(moments, RunningMoments)
            yield int(index), moments


def _is_normalised(leaf: LeafSpec) -> bool:
    if leaf.num_categories > 0 or leaf.dtype == "bool":
        return False
    return leaf.dtype != "uint8" or len(leaf.row_shape) < 2


def _sum(numbers: Tensor) -> Tensor:
    """Sums [T, B, *shape] to float64 [*shape]."""
    return numbers.sum(dim=(0, 1), dtype=torch.float64)
