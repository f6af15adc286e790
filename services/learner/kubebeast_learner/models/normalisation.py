"""Running statistics of observations: what a network sees has mean 0 and variance 1, whatever its units."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from kubebeast_learner.ranks.group import sum_over_ranks
from kubebeast_learner.spec import LeafSpec, ModelSpecError, describe_leaf

LIMIT = 10.0
"""Normalised numbers are cut off there: rare extremes, and the first rows, of which little is known."""
_EPSILON = 1e-4
"""Added to the variance: a number that never changes stays 0."""


class RunningMoments(nn.Module):
    """Mean and variance of each number of one leaf, over all rows so far; buffers, so that checkpoints have them.

    Merged batch by batch (Chan et al. 1983, https://doi.org/10.1080/00031305.1983.10483115), which loses no precision
    however many rows there were.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(*shape))
        self.register_buffer("variance", torch.ones(*shape))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """float32 [T, B, *shape], normalised, in [-LIMIT, LIMIT]."""
        normalised = (rows.float() - self.mean) * (self.variance + _EPSILON).rsqrt()
        return normalised.clamp(-LIMIT, LIMIT)

    @torch.no_grad()
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """Takes in the rows [T, B, *shape] of all ranks where bool [T, B] is true; the others may hold anything."""
        where = counted.view(*counted.shape, *[1] * self.mean.ndim)
        rows = rows.float().masked_fill(~where, 0.0)
        added = sum_over_ranks(counted.sum())
        mean = sum_over_ranks(rows.sum(dim=(0, 1))) / added.clamp(min=1)
        squares = (rows - mean).masked_fill(~where, 0.0).square().sum(dim=(0, 1))
        variance = sum_over_ranks(squares) / added.clamp(min=1)
        total = self.count + added
        share = torch.where(total > 0, added / total.clamp(min=1), 0.0).float()
        difference = mean - self.mean
        self.variance.lerp_(variance, share).add_(share * (1.0 - share) * difference.square())
        self.mean.add_(share * difference)
        self.count.copy_(total)


class ObservationNormaliser(nn.Module):
    """Normalises the leaves of floats; bytes, categories and masks stay as they are."""

    def __init__(self, observation: Sequence[LeafSpec]) -> None:
        """ModelSpecError where there is no leaf of floats."""
        super().__init__()
        self.leaves = nn.ModuleDict(
            {
                str(index): RunningMoments(leaf.row_shape)
                for index, leaf in enumerate(observation)
                if leaf.dtype.startswith("float")
            }
        )

        if not self.leaves:
            listed = ", ".join(map(describe_leaf, observation))
            raise ModelSpecError(f"normalise_observations = True: no leaf holds floats: {listed}")

    def forward(self, observation: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """All leaves [T, B, *row_shape], those of floats as float32."""
        leaves = list(observation)
        for index, moments in self._moments():
            leaves[index] = moments(leaves[index])
        return tuple(leaves)

    def add(self, observation: Sequence[Tensor], counted: Tensor) -> None:
        """Takes in rows [T, B, *row_shape] of all leaves where bool [T, B] is true; those that act never call it."""
        for index, moments in self._moments():
            moments.add(observation[index], counted)

    def _moments(self) -> Iterator[tuple[int, RunningMoments]]:
        """With the index of the leaf."""
        for index, moments in self.leaves.items():
            assert isinstance(moments, RunningMoments)
            yield int(index), moments
