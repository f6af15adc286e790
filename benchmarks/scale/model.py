"""A tiny network that learns from images, so that the cost of an update is the cost common to all models."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kubebeast_learner.models import LeafSpec, ModelInputs, ModelOutput

NUM_PIXELS = 16


class TinyNet(nn.Module):
    """Linear layers over the first pixels of a screen."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        self.policy = nn.Linear(NUM_PIXELS, num_actions)
        self.baseline = nn.Linear(NUM_PIXELS, 1)

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        return ()

    def forward(self, inputs: ModelInputs, core_state: tuple[Tensor, ...]) -> tuple[ModelOutput, tuple[Tensor, ...]]:
        pixels = inputs.observation[0].flatten(2)[..., :NUM_PIXELS].to(torch.float32) / 255
        return ModelOutput(self.policy(pixels), self.baseline(pixels).squeeze(-1)), ()
