"""Unrolls made up of random rows, where there are no real ones: to try a loss, and for a rank without a batch."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.models import LeafSpec, Model
from kubebeast_learner.models.dummy import dummy_inputs

T, B = 3, 2


def made_up_rollout(model: Model, observation: Sequence[LeafSpec]) -> Rollout:
    """Two unrolls: one inside an episode, one whose episode terminates at row 1 and is followed by the next.

    On the model's device.
    """
    rows = dummy_inputs(observation, model.distribution, T + 1, B, num_tasks=model.num_tasks)
    ended = torch.zeros(T + 1, B, dtype=torch.bool)
    ended[1, 1] = True
    rollout = Rollout(
        observation=rows.observation,
        rewards=rows.reward,
        terminated=ended,
        truncated=torch.zeros_like(ended),
        is_first=ended.roll(1, dims=0),
        last_action=rows.last_action,
        action=rows.last_action[1:],
        policy_logits=torch.zeros(T, B, model.distribution.num_logits),
        valid=~ended[:-1],
        policy_version=torch.zeros(T, B, dtype=torch.int64),
        core_state=model.initial_state(B),
        distribution=model.distribution,
        task=None if rows.task is None else rows.task[:1],
    )
    device = next(model.parameters()).device
    return map_tensors(lambda tensor: tensor.to(device), rollout)


def empty_rollout(model: Model, observation: Sequence[LeafSpec]) -> Rollout:
    """The same without a valid transition: it contributes nothing to any loss."""
    rollout = made_up_rollout(model, observation)
    return replace(rollout, valid=torch.zeros_like(rollout.valid))
