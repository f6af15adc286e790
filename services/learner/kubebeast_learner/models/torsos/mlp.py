"""A multi-layer perceptron over leaves that are not images or are flattened by request."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.models.torsos.base import Torso


class MLPTorso(Torso):
    """ReLU layers over the flattened and joined leaves (categories one-hot, uint8 numbers scaled to [0, 1])."""

    def __init__(self, observation: Sequence[LeafSpec], hidden_sizes: Sequence[int]) -> None:
        super().__init__()
        self.num_categories = tuple(leaf.num_categories for leaf in observation)
        input_size = sum(map(_flat_size, observation))
        layers: list[nn.Module] = []
        for hidden_size in hidden_sizes:
            layers += [nn.Linear(input_size, hidden_size), nn.ReLU()]
            input_size = hidden_size
        self.layers = nn.Sequential(*layers)
        self.output_size = input_size

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        return [f"flattened to {_flat_size(leaf):,} numbers" for leaf in observation]

    def forward(self, *leaves: Tensor) -> Tensor:
        """Maps leaves [T, B, *row_shape] to float32 [T, B, hidden_sizes[-1]]."""
        flat = [_flat(leaf, n) for leaf, n in zip(leaves, self.num_categories, strict=True)]
        features: Tensor = self.layers(torch.cat(flat, dim=-1))
        return features


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
