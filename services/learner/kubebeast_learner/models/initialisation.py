"""Orthogonal initial weights of the built-in models."""

import math
from collections.abc import Iterator

from torch import nn

from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.torsos.own import OwnEncoder

POLICY_GAIN = 0.01
"""Gain that keeps the first policy nearly uniform (Andrychowicz et al. 2020, arXiv:2006.05990, section 3.2)."""


def initialise_orthogonally(model: ActorCritic) -> None:
    """Sets orthogonal weights (Saxe et al. 2013, arXiv:1312.6120), gain sqrt(2) for the torso's layers, zero biases.

    They preserve the scale of the input through the layers, which PyTorch's defaults shrink. LSTMs and users' encoders
    keep their own initial weights.
    """
    for torso in (model.torso, model.value_torso):
        for layer in () if torso is None else _layers(torso):
            _initialise(layer, math.sqrt(2))
    _initialise(model.policy, POLICY_GAIN)
    if model.popart is None:  # PopArt's values begin at 0
        _initialise(model.baseline, 1.0)


def _layers(module: nn.Module) -> Iterator[nn.Conv2d | nn.Linear]:
    if isinstance(module, nn.Conv2d | nn.Linear):
        yield module
    elif not isinstance(module, OwnEncoder):
        for child in module.children():
            yield from _layers(child)


def _initialise(module: nn.Conv2d | nn.Linear, gain: float) -> None:
    nn.init.orthogonal_(module.weight, gain)
    if module.bias is not None:
        nn.init.zeros_(module.bias)
