"""Normal distributions for numbers: Box spaces, bounded or not."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

LOG_STD_RANGE = -5.0, 2.0
"""Bounds of log standard deviations; outside, draws are nearly constant, or nearly uniform over a bounded leaf."""
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NUM_NODES = 32
"""Nodes of the quadrature: its error is below 0.02 nats, times the standard deviation if that is above 1 (see its
tests)."""


@dataclass(frozen=True, slots=True)
class Normal:
    """Diagonal normal distribution: the logits of E elements are E means, then E log standard deviations.

    Log standard deviations are clamped to LOG_STD_RANGE.
    """

    num_elements: int
    is_squashed = False

    def __str__(self) -> str:
        return f"{self.num_elements} means, which are greedy, then {self.num_elements} log standard deviations"

    @property
    def num_logits(self) -> int:
        return 2 * self.num_elements

    @property
    def num_features(self) -> int:
        return self.num_elements

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Draws elements; 0 if the mean is NaN, as environments accept numbers only. Such rows are not trained on."""
        mean, log_std = _split(logits)
        return (mean + log_std.exp() * torch.empty_like(mean).normal_(generator=generator)).nan_to_num()

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
        """Returns elements clamped to [-10, 10]."""
        return elements.clamp(-10.0, 10.0)


@dataclass(frozen=True, slots=True)
class SquashedNormal(Normal):
    """tanh of a Normal, in (-1, 1) (Haarnoja et al. 2018, arXiv:1801.01290, appendix C).

    Elements are the numbers before tanh: from 9 on, float32 rounds tanh to 1, which does not determine the draw.
    """

    is_squashed = True

    def __str__(self) -> str:
        return f"{Normal.__str__(self)}, all before tanh"

    def mode(self, logits: Tensor) -> Tensor:
        """Returns the mean: its tanh is the median, which, unlike the mode, does not jump to a bound."""
        return Normal.mode(self, logits)

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        """Returns the log-density of tanh of the elements."""
        return Normal.log_prob(self, logits, elements) - _log_slope(elements).sum(dim=-1)

    def entropy(self, logits: Tensor) -> Tensor:
        """Returns the entropy of the normal plus the mean of log(1 - tanh^2), by Gauss-Hermite quadrature."""
        mean, log_std = _split(logits)
        nodes, weights = _quadrature(mean.device, mean.dtype)
        points = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * nodes
        return Normal.entropy(self, logits) + (_log_slope(points) * weights).sum(dim=(-2, -1))

    def features(self, elements: Tensor) -> Tensor:
        """Returns elements unchanged."""
        return elements


def _split(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns means and log standard deviations, [*, E] each."""
    mean, log_std = logits.chunk(2, dim=-1)
    return mean, log_std.clamp(*LOG_STD_RANGE)


def _log_slope(x: Tensor) -> Tensor:
    """Returns log(1 - tanh(x)^2), exact even if tanh(x) rounds to 1."""
    return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


def keep_quadrature_constant() -> None:
    """Makes everything that is compiled afterwards take the quadrature as a constant; graphs would break at NumPy.

    Not a decorator, because importing the compiler takes a second and 70 MiB in every process.
    """
    torch.compiler.assume_constant_result(_quadrature)  # type: ignore[no-untyped-call]


_quadratures: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}


def _quadrature(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns nodes and weights of the mean over a standard normal (numpy.polynomial.hermite_e.hermegauss)."""
    # A dictionary, not functools.cache, at which compiled graphs break.
    if (device, dtype) not in _quadratures:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NUM_NODES)
        with torch.inference_mode(False):  # a tensor of inference mode would not do for training
            pair = tuple(torch.tensor(each, dtype=dtype, device=device) for each in (nodes, weights / weights.sum()))
        _quadratures[device, dtype] = pair[0], pair[1]
    return _quadratures[device, dtype]
