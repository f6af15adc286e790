"""Normalized advantages, and the bound of PPO on the policy's ratio."""

from dataclasses import replace

import pytest
import torch

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import ModelOutput
from tests.unit.learner.algorithm.learning_data import loss_of, random_rollout

T, B, A = 5, 4, 3


def gradient_of(rollout: Rollout, policy_logits: torch.Tensor, config: LossConfig) -> torch.Tensor:
    """Returns the gradient of the loss with respect to policy_logits [T, B, A], with V = 0 everywhere."""
    logits = torch.cat([policy_logits, torch.zeros(1, B, A)]).requires_grad_()
    loss_of(ModelOutput(logits, torch.zeros(T + 1, B)), rollout, config).total.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    return logits.grad[:-1]


REWARDS_ARE_ADVANTAGES = LossConfig(discounting=0.0, entropy_cost=0.0, reward_clipping="none")
"""With V = 0, advantages are rewards."""


def test_normalised_advantages_have_mean_0_and_variance_1_over_the_valid_transitions() -> None:
    rollout = random_rollout(T, B, A)
    rewards = rollout.rewards[1:][rollout.valid]
    shifted = rollout.rewards.clone()
    shifted[1:][rollout.valid] = (rewards - rewards.mean()) / rewards.std(correction=0)
    normalising = replace(REWARDS_ARE_ADVANTAGES, normalise_advantages=True)
    torch.testing.assert_close(
        gradient_of(rollout, rollout.policy_logits, normalising),
        gradient_of(replace(rollout, rewards=shifted), rollout.policy_logits, REWARDS_ARE_ADVANTAGES),
    )


def test_advantages_that_are_all_alike_are_normalised_to_0() -> None:
    rollout = random_rollout(T, B, A, rewards=torch.full((T + 1, B), 3.0))
    normalising = replace(REWARDS_ARE_ADVANTAGES, normalise_advantages=True)
    gradient = gradient_of(rollout, rollout.policy_logits, normalising)
    torch.testing.assert_close(gradient, torch.zeros(T, B, A))


@pytest.mark.parametrize(("normalise_advantages", "mean"), [(False, 0.0), (True, 3.0)])
def test_a_clipped_policy_ratio_gives_the_gradient_of_ppos_objective(normalise_advantages: bool, mean: float) -> None:
    rollout, epsilon = random_rollout(T, B, A), 0.2
    rollout = replace(rollout, rewards=rollout.rewards + mean)
    policy_logits = rollout.policy_logits + 0.3 * torch.randn(T, B, A, generator=torch.Generator().manual_seed(1))
    config = replace(
        REWARDS_ARE_ADVANTAGES, clip_rho_threshold=None, clip_pg_rho_threshold=None, clip_policy_ratio=epsilon
    )
    config = replace(config, normalise_advantages=normalise_advantages)

    logits = policy_logits.clone().requires_grad_()
    taken = rollout.action.unsqueeze(-1)
    log_probs, old = (x.log_softmax(-1).gather(-1, taken).squeeze(-1) for x in (logits, rollout.policy_logits))
    ratios, advantages = (log_probs - old).exp(), rollout.rewards[1:]
    if normalise_advantages:
        valid = advantages[rollout.valid]
        advantages = (advantages - valid.mean()) / valid.std(correction=0)
    clipped = ratios.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratios * advantages, clipped * advantages)
    objective[rollout.valid].sum().neg().backward()  # type: ignore[no-untyped-call]

    assert logits.grad is not None
    assert (clipped != ratios)[rollout.valid].any()
    torch.testing.assert_close(gradient_of(rollout, policy_logits, config), logits.grad)
