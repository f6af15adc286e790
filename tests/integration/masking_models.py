"""Networks that mask the illegal moves of masked_game."""

from collections.abc import Sequence

import torch
from torch import nn

from kubebeast_learner.models import CoreState, LeafSpec, ModelInputs, ModelOutput


class Net(nn.Module):
    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        self.policy = nn.Linear(num_actions, num_actions)
        self.baseline = nn.Linear(num_actions, 1)

    def initial_state(self, batch_size: int) -> CoreState:
        return ()

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        hint, legal = inputs.observation
        policy_logits = self.policy(hint).masked_fill(legal == 0, -torch.inf)
        return ModelOutput(policy_logits, self.baseline(hint).squeeze(-1)), core_state


class MasksAll(Net):
    """Masks all actions of real rows in which action 0 is illegal, but of no made-up ones: it passes the check at the
    start.
    """

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        output, core_state = super().forward(inputs, core_state)
        nothing = inputs.observation[0][..., :1] == 0  # in made-up rows the hint is never quite 0
        return output._replace(policy_logits=output.policy_logits.masked_fill(nothing, -torch.inf)), core_state
