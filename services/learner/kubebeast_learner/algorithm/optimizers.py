"""Builds the optimizer."""

from collections.abc import Iterable, Mapping
from typing import Any

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


def load_averages(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Restores the running averages of `saved`, a state_dict; `optimizer` keeps the settings that it was made with."""
    optimizer.load_state_dict({"state": saved["state"], "param_groups": optimizer.state_dict()["param_groups"]})
    for group in optimizer.param_groups:
        if group.get("momentum"):  # RMSProp makes the buffer in a parameter's first step only
            for parameter in group["params"]:
                state = optimizer.state[parameter]
                if "square_avg" in state:
                    state.setdefault("momentum_buffer", torch.zeros_like(parameter))
