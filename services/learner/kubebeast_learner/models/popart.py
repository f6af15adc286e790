"""A value head for returns of any size: PopArt, "preserving outputs precisely, while adaptively rescaling targets".

van Hasselt et al. 2016, https://arxiv.org/abs/1602.07714; for several tasks and V-trace Hessel et al. 2018,
https://arxiv.org/abs/1809.04474, with the notation of the latter: the head estimates n(x), and the value is
V(x) = sigma n(x) + mu with mu and sigma of the task of x.
"""

import torch
from torch import Tensor, nn

from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.ranks.group import sum_over_ranks

RATE = 1e-2
"""Rate of the moving averages, beta; while 1 / num_updates is larger, they are plain means."""
MIN_SCALE, MAX_SCALE = 1e-6, 1e6
"""Bounds of sigma. The lower bound in the second paper, 1e-4, suits rewards in points of a game."""


class PopArt(nn.Linear):
    """A linear value head for K tasks. The statistics are buffers, so checkpoints and actors have them.

    All values begin at 0, and sigma is 1 until the first target other than 0: random initial values would determine
    the scale of the first targets even if rewards are small. Targets beyond LARGEST are left out of the statistics.
    """

    mean: Tensor
    """float32 [K]: mu."""
    variance: Tensor
    """float32 [K]."""
    num_updates: Tensor
    """float32 [K]: updates with targets of the task, from the first target other than 0 on."""

    def __init__(self, num_features: int, num_tasks: int = 1) -> None:
        super().__init__(num_features, num_tasks)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)
        self.register_buffer("mean", torch.zeros(num_tasks))
        self.register_buffer("variance", torch.ones(num_tasks))
        self.register_buffer("num_updates", torch.zeros(num_tasks))

    @property
    def scale(self) -> Tensor:
        """float32 [K]: sigma."""
        return self.variance.sqrt().clamp(MIN_SCALE, MAX_SCALE)

    def values(self, features: Tensor, task: Tensor | None) -> Tensor:
        """Returns float32 [T, B] for features [T, B, num_features]. task: int64 [T, B], None if there is one task."""
        every: Tensor = self.scale * self(features) + self.mean
        return every.squeeze(-1) if task is None else every.gather(-1, task.unsqueeze(-1)).squeeze(-1)

    @torch.no_grad()
    def add(self, targets: Tensor, counted: Tensor, task: Tensor | None) -> None:
        """Adds the value targets [T, B] of all ranks for which `counted`, bool [T, B], is true; `values` stay the same.

        task: int64 [B], None if there is one task.
        """
        targets = targets.double()  # squares of large targets exceed float32
        counted = counted & (targets.abs() <= LARGEST)
        index = torch.zeros_like(counted, dtype=torch.int64) if task is None else task.expand_as(counted)
        chosen = counted & (index == torch.arange(len(self.mean), device=index.device).view(-1, 1, 1))  # [K, T, B]
        of_task = torch.where(chosen, targets, 0.0)  # [K, T, B]
        sizes = torch.stack([chosen.sum(dim=(1, 2)), of_task.sum(dim=(1, 2)), of_task.count_nonzero(dim=(1, 2))])
        count, total, num_others = sum_over_ranks(sizes)
        # Before the first reward all targets are 0 and give no scale.
        size, is_met = count.clamp(min=1), (count > 0) & ((self.num_updates > 0) | (num_others > 0))
        mean = total / size
        squares = torch.where(chosen, targets - mean.view(-1, 1, 1), 0.0).square().sum(dim=(1, 2))
        variance = sum_over_ranks(squares) / size
        self.num_updates.add_(is_met)
        share = torch.where(is_met, self.num_updates.clamp(min=1).reciprocal().clamp(min=RATE), 0.0).double()
        old_mean, old_scale = self.mean.clone(), self.scale
        difference = mean - old_mean
        merged = self.variance + share * (variance - self.variance) + share * (1.0 - share) * difference.square()
        self.variance.copy_(merged)
        self.mean.copy_(old_mean + share * difference)
        ratio = old_scale / self.scale
        self.weight.mul_(ratio.unsqueeze(-1))
        self.bias.mul_(ratio).add_((old_mean - self.mean) / self.scale)
