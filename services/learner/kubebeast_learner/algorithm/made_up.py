"""Unrolls of random rows in place of real ones: to try a loss, and for a rank without a batch."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.models import LeafSpec, Model
from kubebeast_learner.models.dummy import dummy_inputs

T, B = 3, 2


def made_up_rollout(
    model: Model, observation: Sequence[LeafSpec], unroll_length: int = T, batch_size: int = B
) -> Rollout:
    """Returns unrolls inside an episode; in the last one the episode terminates at row 1 and the next one follows.

    On the model's device; frames lie in memory as the native pool lays them out for the model.
    """
    rows = dummy_inputs(observation, model.distribution, unroll_length + 1, batch_size, num_tasks=model.num_tasks)
    ended = torch.zeros(unroll_length + 1, batch_size, dtype=torch.bool)
    ended[1, -1] = True
    rollout = Rollout(
        observation=model.with_frames_first(interleaved(model, rows.observation), axis=2),
        rewards=rows.reward,
        terminated=ended,
        truncated=torch.zeros_like(ended),
        is_first=ended.roll(1, dims=0),
        last_action=rows.last_action,
        action=rows.last_action[1:],
        policy_logits=torch.zeros(unroll_length, batch_size, model.distribution.num_logits),
        valid=~ended[:-1],
        policy_version=torch.zeros(unroll_length, batch_size, dtype=torch.int64),
        core_state=model.initial_state(batch_size),
        distribution=model.distribution,
        task=None if rows.task is None else rows.task[:1],
    )
    device = next(model.parameters()).device
    return map_tensors(lambda tensor: tensor.to(device), rollout)


def with_single_frames(rollout: Rollout, observation: Sequence[LeafSpec]) -> Rollout:
    """Returns `rollout` as the native pool delivers it for a GPU: each frame of a stack once, with a frame_index."""
    length, batch_size = rollout.is_first.shape
    leaves, index = [], []
    for leaf, rows in zip(observation, rollout.observation, strict=True):
        k = leaf.frame_stack if leaf.frame_stack > 1 else 0
        leaves.append(torch.cat([rows[0].movedim(1, 0), rows[1:, :, -1]]) if k else rows)
        places = torch.arange(length, dtype=torch.int32).unsqueeze(1) + torch.arange(k, dtype=torch.int32)
        index.append(places.unsqueeze(1).repeat(1, batch_size, 1))
    return replace(rollout, observation=tuple(leaves), frame_index=tuple(index))


def interleaved(model: Model, observation: Sequence[Tensor]) -> list[Tensor]:
    """Returns leaves [T, B, *row_shape] as the native pool hands them to `model`, with the frames of a stack last if
    the model reads them interleaved; `Model.with_frames_first` is the inverse.
    """
    chosen = model.interleaved or [False] * len(observation)
    return [
        leaf.movedim(2, -1).contiguous() if frames_last else leaf
        for leaf, frames_last in zip(observation, chosen, strict=True)
    ]


def empty_rollout(model: Model, observation: Sequence[LeafSpec]) -> Rollout:
    """Returns a `made_up_rollout` without a valid transition, which contributes nothing to any loss."""
    rollout = made_up_rollout(model, observation)
    return replace(rollout, valid=torch.zeros_like(rollout.valid))
