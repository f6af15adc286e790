"""Builds the optimizer."""

from collections.abc import Iterable

import torch
from torch import nn

from kubebeast_learner.config import OptimizerConfig


def make_optimizer(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> torch.optim.Optimizer:
    """RMSProp or Adam, as configured; the learning rate is set before every step."""
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=config.learning_rate, eps=config.epsilon, fused=True)
    return torch.optim.RMSprop(
        parameters,
        lr=config.learning_rate,
        alpha=config.alpha,
        eps=config.epsilon,
        momentum=config.momentum,
        foreach=True,
    )
