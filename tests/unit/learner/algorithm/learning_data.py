"""Leaves, rollouts and models of tiny size for the tests of the learner."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig, ModelConfig
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import CoreState, Model, ModelOutput, make_model


@dataclass(frozen=True)
class Leaf:
    row_shape: tuple[int, ...]
    dtype: str = "float32"
    path: str = ""
    frame_stack: int = 1
    num_categories: int = 0
    bounded: bool = False
    is_action_mask: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row_shape[1:] if self.frame_stack > 1 else self.row_shape


FRAMES = Leaf((4, 84, 84), "uint8", "screen", frame_stack=4)
VECTOR = Leaf((5,), path="position")


def discrete(num_actions: int) -> Leaf:
    return Leaf((), "int64", "action", num_categories=num_actions)


def random_leaf(leaf: Leaf, T: int, B: int) -> torch.Tensor:
    shape = (T, B, *leaf.row_shape)
    if leaf.num_categories:
        return torch.randint(leaf.num_categories, shape)
    return torch.randint(256, shape, dtype=torch.uint8) if leaf.dtype == "uint8" else torch.randn(shape)


def make_mlp(num_actions: int = 3, *, use_lstm: bool = False, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    config = ModelConfig(model="mlp", use_lstm=use_lstm, hidden_sizes=(8,))
    return make_model([VECTOR], [discrete(num_actions)], config)


def loss_of(output: ModelOutput, rollout: Rollout, config: LossConfig | None = None) -> LossOutput:
    """Returns the loss at step 0."""
    config = config or LossConfig()
    return impala_loss(output, rollout, config, torch.tensor(config.entropy_cost))


def random_rollout(
    unroll_length: int = 5,
    batch_size: int = 4,
    num_actions: int = 3,
    core_state: CoreState = (),
    seed: int = 0,
    **changes: Any,
) -> Rollout:
    """Returns random rows of the VECTOR leaf with both ends of episodes; the last column is partly padding."""
    generator = torch.Generator().manual_seed(seed)
    T, B = unroll_length, batch_size
    ended = torch.rand(T + 1, B, generator=generator) < 0.2
    is_first = torch.zeros(T + 1, B, dtype=torch.bool)
    for t in range(1, T + 1):
        ended[t] &= ~ended[t - 1]
        is_first[t] = ended[t - 1]
    by_rules = torch.rand(T + 1, B, generator=generator) < 0.5
    valid = ~ended[:-1]
    valid[T // 2 :, -1] = False
    rollout = Rollout(
        observation=(torch.randn(T + 1, B, 5, generator=generator),),
        rewards=torch.randn(T + 1, B, generator=generator).masked_fill(is_first, 0.0),
        terminated=ended & by_rules,
        truncated=ended & ~by_rules,
        is_first=is_first,
        last_action=torch.randint(num_actions, (T + 1, B), generator=generator),
        action=torch.randint(num_actions, (T, B), generator=generator),
        policy_logits=torch.randn(T, B, num_actions, generator=generator),
        valid=valid,
        policy_version=torch.zeros(T, B, dtype=torch.int64),
        core_state=core_state,
        distribution=ActionDistribution.of([discrete(num_actions)]),
    )
    return replace(rollout, **changes)


def shortened(rollout: Rollout, column: int, num_transitions: int) -> Rollout:
    """Returns the first transitions of one column as a batch of its own."""
    T, B = num_transitions, slice(column, column + 1)
    return Rollout(
        observation=tuple(leaf[: T + 1, B] for leaf in rollout.observation),
        rewards=rollout.rewards[: T + 1, B],
        terminated=rollout.terminated[: T + 1, B],
        truncated=rollout.truncated[: T + 1, B],
        is_first=rollout.is_first[: T + 1, B],
        last_action=rollout.last_action[: T + 1, B],
        action=rollout.action[:T, B],
        policy_logits=rollout.policy_logits[:T, B],
        valid=rollout.valid[:T, B],
        policy_version=rollout.policy_version[:T, B],
        core_state=tuple(tensor[:, B] for tensor in rollout.core_state),
        distribution=rollout.distribution,
    )
