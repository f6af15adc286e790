"""Initial weights."""

import math

from torch import nn

from kubebeast_learner.models.actor_critic import ActorCritic

POLICY_GAIN = 0.01
"""Keeps the first policy nearly uniform (Andrychowicz et al. 2020, arXiv:2006.05990, section 3.2)."""


def initialise_orthogonally(model: ActorCritic) -> None:
    """Orthogonal weights (Saxe et al. 2013, arXiv:1312.6120), gain sqrt(2) for the torso's ReLU layers, zero biases.

    They carry the scale of the input through the layers, which PyTorch's defaults shrink. An LSTM keeps its defaults.
    """
    for module in model.torso.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            _initialise(module, math.sqrt(2))
    _initialise(model.policy, POLICY_GAIN)
    _initialise(model.baseline, 1.0)


def _initialise(module: nn.Conv2d | nn.Linear, gain: float) -> None:
    nn.init.orthogonal_(module.weight, gain)
    if module.bias is not None:
        nn.init.zeros_(module.bias)
