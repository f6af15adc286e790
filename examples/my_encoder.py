"""A custom encoder for a single leaf of the observation, trained from this folder with

kubebeast mono --env CartPole-v1 --encoder .=my_encoder:FourierFeatures
"""

import math

import torch
from torch import Tensor, nn

from kubebeast_learner.models import LeafSpec


class FourierFeatures(nn.Module):
    """Sines and cosines of learned projections of a vector: small differences become visible (arXiv:2006.10739)."""

    def __init__(self, leaf: LeafSpec, num_frequencies: int = 32, scale: float = 1.0) -> None:
        super().__init__()
        self.projection = nn.Linear(math.prod(leaf.row_shape), num_frequencies)
        nn.init.normal_(self.projection.weight, std=scale)
        self.output_size = 2 * num_frequencies

    def forward(self, rows: Tensor) -> Tensor:
        angles = self.projection(rows.float().flatten(2))
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
