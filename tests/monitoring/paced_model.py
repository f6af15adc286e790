"""A network whose updates take their time, asleep: how fast the learner is does not depend on the machine."""

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
"""What the forward pass of an update takes at least."""
PATIENCE_S = 3.0
"""What it takes at most: as long as the next batch is not there, which on a busy machine takes its time. So the learner
waits for a fleet only that is too small by far.
"""
POLL_S = 0.1


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
            until = time.monotonic() + PATIENCE_S
            time.sleep(UPDATE_S)
            while time.monotonic() < until and _rollouts_queued() < inputs.reward.shape[1]:
                time.sleep(POLL_S)
        features = torch.cat([leaf.flatten(2) for leaf in inputs.observation], dim=-1)
        return ModelOutput(self.policy(features), self.baseline(features).squeeze(-1)), core_state


def _rollouts_queued() -> float:
    """As this process, the learner, tells it; infinitely many where it does not answer."""
    (address,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--http-address=")]
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=1.0) as page:
        if found := re.search(r"^kubebeast_rollouts_queued(?:\{.*\})? (\S+)$", page.read().decode(), re.MULTILINE):
            return float(found[1])
    return math.inf
