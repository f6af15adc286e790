"""Initial weights."""

import math
from collections.abc import Iterator

from torch import nn

from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.torsos.own import OwnEncoder

POLICY_GAIN = 0.01
"""Keeps the first policy nearly uniform (Andrychowicz et al. 2020, arXiv:2006.05990, section 3.2)."""


def initialise_orthogonally(model: ActorCritic) -> None:
    """Orthogonal weights (Saxe et al. 2013, arXiv:1312.6120), gain sqrt(2) for the torso's ReLU layers, zero biases.

    They carry the scale of the input through the layers, which PyTorch's defaults shrink. An LSTM keeps its defaults,
    an encoder of the user's what its author chose.
    """
    for torso in (model.torso, model.value_torso):
        for layer in () if torso is None else _layers(torso):
            _initialise(layer, math.sqrt(2))
    _initialise(model.policy, POLICY_GAIN)
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
