"""A multi-layer perceptron over leaves that are not images or are flattened by request."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.models.scales.observation import is_number
from kubebeast_learner.models.torsos.base import InputKind, Torso

_MOST_ONE_HOT = 1024
"""Categories up to which one-hot vectors are made: memory and time of wider ones exceed those of all layers."""


class MLPTorso(Torso):
    """ReLU layers over the flattened and joined leaves (categories one-hot, uint8 numbers scaled to [0, 1]).

    One-hot vectors of many categories are not made: the first layer adds the columns of its weights that they select.
    """

    def __init__(self, observation: Sequence[LeafSpec], hidden_sizes: Sequence[int]) -> None:
        super().__init__()
        self.num_categories = tuple(leaf.num_categories for leaf in observation)
        self._flat_sizes = list(map(_flat_size, observation))
        input_size = sum(self._flat_sizes)
        layers: list[nn.Module] = []
        for hidden_size in hidden_sizes:
            layers += [nn.Linear(input_size, hidden_size), nn.ReLU()]
            input_size = hidden_size
        self.layers = nn.Sequential(*layers)
        self.output_size = input_size

    def kinds(self, observation: Sequence[LeafSpec]) -> list[InputKind]:
        """See `Torso.kinds`."""
        return ["numbers" if is_number(leaf) else "other" for leaf in observation]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        return [f"flattened to {_flat_size(leaf):,} numbers" for leaf in observation]

    def forward(self, *leaves: Tensor) -> Tensor:
        """Maps leaves [T, B, *row_shape] to float32 [T, B, hidden_sizes[-1]]."""
        features: Tensor
        if max(self.num_categories) > _MOST_ONE_HOT:
            features = self.layers[1:](self._first_layer(leaves))
        else:
            flat = [_flat(leaf, n) for leaf, n in zip(leaves, self.num_categories, strict=True)]
            features = self.layers(torch.cat(flat, dim=-1))
        return features

    def _first_layer(self, leaves: Sequence[Tensor]) -> Tensor:
        """Maps leaves [T, B, *row_shape] to float32 [T, B, hidden_sizes[0]], before the ReLU."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        total: Tensor = first.bias
        weights = torch.split(first.weight, self._flat_sizes, dim=1)
        for leaf, n, weight in zip(leaves, self.num_categories, weights, strict=True):
            if n > _MOST_ONE_HOT:
                categories = leaf.long().reshape(*leaf.shape[:2], -1)
                columns = categories + n * torch.arange(categories.shape[-1], device=leaf.device)
                total = total + F.embedding(columns, weight.T).sum(dim=-2)
            else:
                total = total + F.linear(_flat(leaf, n), weight)
        return total


def _flat_size(leaf: LeafSpec) -> int:
    """Returns the number of inputs for a row of the leaf."""
    return math.prod(leaf.row_shape) * max(1, leaf.num_categories)


def _flat(leaf: Tensor, num_categories: int) -> Tensor:
    """Flattens [T, B, *row_shape] to float32 [T, B, size]."""
    if num_categories > 0:
        encoded = F.one_hot(leaf.long(), num_categories).float()
    else:
        encoded = leaf.float() / 255 if leaf.dtype == torch.uint8 else leaf.float()
    return encoded.reshape(*leaf.shape[:2], -1)
