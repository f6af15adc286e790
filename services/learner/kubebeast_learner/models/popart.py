"""A value head for returns of any size: PopArt, "preserving outputs precisely, while adaptively rescaling targets".

van Hasselt et al. 2016, https://arxiv.org/abs/1602.07714; for several tasks and V-trace Hessel et al. 2018,
https://arxiv.org/abs/1809.04474, whose notation this is: the head estimates n(x), the value is V(x) = sigma n(x) + mu,
with mu and sigma of the task that x belongs to.
"""

import torch
from torch import Tensor, nn

from kubebeast_learner.ranks.group import sum_over_ranks

RATE = 1e-2
"""beta, of the moving averages, after as many updates as make it the larger one: before, they are plain means."""
MIN_SCALE, MAX_SCALE = 1e-4, 1e6
"""Of sigma, as in the second paper."""


class PopArt(nn.Linear):
    """One value of features for each of K tasks. The statistics are buffers: checkpoints and actors have them."""

    mean: Tensor
    """float32 [K]: mu."""
    variance: Tensor
    """float32 [K]."""
    num_updates: Tensor
    """float32 [K]: those that brought targets of the task."""

    def __init__(self, num_features: int, num_tasks: int = 1) -> None:
        super().__init__(num_features, num_tasks)
        self.register_buffer("mean", torch.zeros(num_tasks))
        self.register_buffer("variance", torch.ones(num_tasks))
        self.register_buffer("num_updates", torch.zeros(num_tasks))

    @property
    def scale(self) -> Tensor:
        """float32 [K]: sigma."""
        return self.variance.sqrt().clamp(MIN_SCALE, MAX_SCALE)

    def values(self, features: Tensor, task: Tensor | None) -> Tensor:
        """float32 [T, B] of features [T, B, num_features]. task: int64 [T, B], None where there is one task."""
        every: Tensor = self.scale * self(features) + self.mean
        return every.squeeze(-1) if task is None else every.gather(-1, task.unsqueeze(-1)).squeeze(-1)

    @torch.no_grad()
    def add(self, targets: Tensor, counted: Tensor, task: Tensor | None) -> None:
        """Takes in the value targets [T, B] of all ranks where bool [T, B] is true; what `values` returns stays.

        task: int64 [B], None where there is one task.
        """
        index = torch.zeros_like(counted, dtype=torch.int64) if task is None else task.expand_as(counted)
        chosen = counted & (index == torch.arange(len(self.mean), device=index.device).view(-1, 1, 1))  # [K, T, B]
        sizes = torch.stack([chosen.sum(dim=(1, 2)), torch.where(chosen, targets, 0.0).sum(dim=(1, 2))])
        count, total = sum_over_ranks(sizes)
        size, is_met = count.clamp(min=1), count > 0
        mean = total / size
        squares = torch.where(chosen, targets - mean.view(-1, 1, 1), 0.0).square().sum(dim=(1, 2))
        variance = sum_over_ranks(squares) / size
        self.num_updates.add_(is_met)
        share = torch.where(is_met, self.num_updates.clamp(min=1).reciprocal().clamp(min=RATE), 0.0)
        old_mean, old_scale = self.mean.clone(), self.scale
        self.mean.lerp_(mean, share)
        self.variance.lerp_(variance, share).add_(share * (1.0 - share) * (mean - old_mean).square())
        ratio = old_scale / self.scale
        self.weight.mul_(ratio.unsqueeze(-1))
        self.bias.mul_(ratio).add_((old_mean - self.mean) / self.scale)
