"""A recurrent network of one's own, trained from this folder with

kubebeast mono --env CartPole-v1 --model my_net:MyNet
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kubebeast_learner.models import LeafSpec, ModelInputs, ModelOutput

HIDDEN_SIZE = 64


class MyNet(nn.Module):
    """One layer over a vector of observations, a GRU, and the two heads."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        (leaf,) = observation
        self.encoder = nn.Sequential(nn.Linear(math.prod(leaf.row_shape), HIDDEN_SIZE), nn.ReLU())
        self.gru = nn.GRUCell(HIDDEN_SIZE, HIDDEN_SIZE)
        self.policy = nn.Linear(HIDDEN_SIZE, num_actions)
        self.baseline = nn.Linear(HIDDEN_SIZE, 1)

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        return (torch.zeros(1, batch_size, HIDDEN_SIZE),)

    def forward(self, inputs: ModelInputs, core_state: tuple[Tensor, ...]) -> tuple[ModelOutput, tuple[Tensor, ...]]:
        features = self.encoder(inputs.observation[0].float().flatten(2))
        hidden = core_state[0][0]
        outputs = []
        for row, is_first in zip(features, inputs.is_first, strict=True):
            hidden = self.gru(row, hidden.masked_fill(is_first.unsqueeze(-1), 0.0))
            outputs.append(hidden)
        output = torch.stack(outputs)
        return ModelOutput(self.policy(output), self.baseline(output).squeeze(-1)), (hidden.unsqueeze(0),)
