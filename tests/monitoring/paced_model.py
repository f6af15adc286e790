"""A network with updates that sleep for a while, so that the learner's speed does not depend on the machine."""

import contextlib
import math
import re
import sys
import time
import urllib.request
from collections.abc import Sequence

import torch
from torch import nn

from kubebeast_learner.models import CoreState, LeafSpec, ModelInputs, ModelOutput

UPDATE_S = 0.35
"""Shortest time of the forward pass of an update, in seconds."""
PATIENCE_S = 3.0
"""Longest time of the forward pass, which lasts until the next batch is there; on a busy machine that takes a while. So
the learner waits for the fleet only if it is far too small.
"""
POLL_S = 0.1


class PacedModel(nn.Module):
    """Linear policy and baseline. Acting, which needs no gradients, is not slowed down."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        num_inputs = sum(torch.Size(leaf.row_shape).numel() for leaf in observation)
        self.policy = nn.Linear(num_inputs, num_actions)
        self.baseline = nn.Linear(num_inputs, 1)

    def initial_state(self, batch_size: int) -> CoreState:
        return ()

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        if torch.is_grad_enabled():
            until = time.monotonic() + PATIENCE_S
            time.sleep(UPDATE_S)
            while time.monotonic() < until and _rollouts_queued() < inputs.reward.shape[1]:
                time.sleep(POLL_S)
        features = torch.cat([leaf.flatten(2) for leaf in inputs.observation], dim=-1)
        return ModelOutput(self.policy(features), self.baseline(features).squeeze(-1)), core_state


def _rollouts_queued() -> float:
    """Returns the metric of this process, the learner; infinity if it does not answer."""
    (address,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--http-address=")]
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=1.0) as page:
        if found := re.search(r"^kubebeast_rollouts_queued(?:\{.*\})? (\S+)$", page.read().decode(), re.MULTILINE):
            return float(found[1])
    return math.inf
