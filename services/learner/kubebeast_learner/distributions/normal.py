"""Numbers: Box spaces, bounded or not."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

LOG_STD_RANGE = -5.0, 2.0
"""Beyond it a standard deviation is as good as 0, or as good as uniform over a bounded leaf."""
_LARGEST = 1.0 - 1e-6
"""Squashed numbers are taken as no nearer to 1: atanh(1) is infinite, and float32 rounds to 1 from 9 on."""
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NUM_NODES = 32
"""Of the quadrature: its error is below 0.02 nats, times the standard deviation where that is above 1 (its tests)."""


@dataclass(frozen=True, slots=True)
class Normal:
    """A diagonal normal distribution: the logits of E elements are E means, then E log standard deviations.

    The latter are clamped to LOG_STD_RANGE.
    """

    num_elements: int

    def __str__(self) -> str:
        return f"{self.num_elements} means, which are greedy, then {self.num_elements} log standard deviations"

    @property
    def num_logits(self) -> int:
        return 2 * self.num_elements

    @property
    def num_features(self) -> int:
        return self.num_elements

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        mean, log_std = _split(logits)
        return mean + log_std.exp() * torch.empty_like(mean).normal_(generator=generator)

    def mode(self, logits: Tensor) -> Tensor:
        return _split(logits)[0]

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        mean, log_std = _split(logits)
        deviations = (elements - mean) * (-log_std).exp()
        return (-0.5 * deviations.square() - log_std - _LOG_SQRT_2PI).sum(dim=-1)

    def entropy(self, logits: Tensor) -> Tensor:
        _, log_std = _split(logits)
        return (log_std + 0.5 + _LOG_SQRT_2PI).sum(dim=-1)

    def features(self, elements: Tensor) -> Tensor:
        """As they are, in [-10, 10]."""
        return elements.clamp(-10.0, 10.0)


@dataclass(frozen=True, slots=True)
class SquashedNormal(Normal):
    """tanh of a Normal, in (-1, 1) (Haarnoja et al. 2018, arXiv:1801.01290, appendix C)."""

    def __str__(self) -> str:
        return f"{Normal.__str__(self)}, all before tanh"

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        return Normal.sample(self, logits, generator).tanh()

    def mode(self, logits: Tensor) -> Tensor:
        """tanh of the mean: the median, which unlike the likeliest number does not jump to a bound."""
        return Normal.mode(self, logits).tanh()

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        unsquashed = elements.clamp(-_LARGEST, _LARGEST).atanh()
        return Normal.log_prob(self, logits, unsquashed) - _log_slope(unsquashed).sum(dim=-1)

    def entropy(self, logits: Tensor) -> Tensor:
        """That of the normal and the mean of log(1 - tanh^2), by Gauss-Hermite quadrature."""
        mean, log_std = _split(logits)
        nodes, weights = (torch.tensor(values, dtype=mean.dtype, device=mean.device) for values in _quadrature())
        points = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * nodes
        return Normal.entropy(self, logits) + (_log_slope(points) * weights).sum(dim=(-2, -1))

    def features(self, elements: Tensor) -> Tensor:
        """As they are."""
        return elements


def _split(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Means and log standard deviations, [*, E] each."""
    mean, log_std = logits.chunk(2, dim=-1)
    return mean, log_std.clamp(*LOG_STD_RANGE)


def _log_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x)^2), exact where tanh(x) rounds to 1."""
    return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


@cache
def _quadrature() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes and weights of the mean over a standard normal (numpy.polynomial.hermite_e.hermegauss)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NUM_NODES)
    return tuple(nodes.tolist()), tuple((weights / weights.sum()).tolist())
