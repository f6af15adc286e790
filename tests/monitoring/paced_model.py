"""A network whose updates take their time, asleep: how fast the learner is does not depend on the machine."""

import time
from collections.abc import Sequence

import torch
from torch import nn

from kubebeast_learner.models import CoreState, LeafSpec, ModelInputs, ModelOutput

UPDATE_S = 0.35
"""What the forward pass of an update takes at least."""


class PacedModel(nn.Module):
    """Linear policy and baseline. Acting, which needs no gradients, is as fast as it can be."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        num_inputs = sum(torch.Size(leaf.row_shape).numel() for leaf in observation)
        self.policy = nn.Linear(num_inputs, num_actions)
        self.baseline = nn.Linear(num_inputs, 1)

    def initial_state(self, batch_size: int) -> CoreState:
        return ()

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        if torch.is_grad_enabled():
            time.sleep(UPDATE_S)
        features = torch.cat([leaf.flatten(2) for leaf in inputs.observation], dim=-1)
        return ModelOutput(self.policy(features), self.baseline(features).squeeze(-1)), core_state
