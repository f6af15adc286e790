"""A custom recurrent network, trained from this folder with

kubebeast mono --env CartPole-v1 --model my_net:MyNet
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kubebeast_learner.models import LeafSpec, ModelInputs, ModelOutput


class MyNet(nn.Module):
    """A linear layer over the observation vector, a GRU, and the heads of policy and baseline."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int, hidden_size: int = 64) -> None:
        super().__init__()
        (leaf,) = observation
        self.encoder = nn.Sequential(nn.Linear(math.prod(leaf.row_shape), hidden_size), nn.ReLU())
        self.gru = nn.GRUCell(hidden_size, hidden_size)
        self.policy = nn.Linear(hidden_size, num_actions)
        self.baseline = nn.Linear(hidden_size, 1)

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        return (torch.zeros(1, batch_size, self.gru.hidden_size),)

    def forward(self, inputs: ModelInputs, core_state: tuple[Tensor, ...]) -> tuple[ModelOutput, tuple[Tensor, ...]]:
        features = self.encoder(inputs.observation[0].float().flatten(2))
        hidden = core_state[0][0]
        outputs = []
        for row, is_first in zip(features, inputs.is_first, strict=True):
            hidden = self.gru(row, hidden.masked_fill(is_first.unsqueeze(-1), 0.0))
            outputs.append(hidden)
        output = torch.stack(outputs)
        return ModelOutput(self.policy(output), self.baseline(output).squeeze(-1)), (hidden.unsqueeze(0),)
