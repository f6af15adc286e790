"""The IMPALA loss (Espeholt et al. 2018, https://arxiv.org/abs/1802.01561, section 4.2).

Notation: T transitions, B unrolls, A policy_logits; x_t the observation of row t, a_t the action taken there, r_t the
reward received on arrival at row t+1, gamma_t = discounting * (1 - terminated_{t+1}). Probabilities, and the entropy H,
are those of the joint action. All sums run over valid transitions. sigma is rollout.value_scale, 1 without
one.

    policy gradient  - sum_t  rho_t (r_t + gamma_t v_{t+1} - V(x_t)) / sigma log pi(a_t|x_t)
    baseline         baseline_cost * 1/2 sum_t ((v_t - V(x_t)) / sigma)^2
    entropy          - entropy_cost * sum_t H(pi(.|x_t))

With normalise_advantages, the factor of rho_t has mean 0 and variance 1 over the batch, the global one if several
learners train. With clip_policy_ratio, it is 0 if the policy has already moved too far.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from kubebeast_learner.algorithm import vtrace
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import ModelOutput
from kubebeast_learner.ranks.group import sum_over_ranks

_VARIANCE_EPSILON = 1e-8
"""Added to the variance, so that equal advantages become 0."""


IMPALA_PARTS = ("pg_loss", "baseline_loss", "entropy_loss", "entropy", "mean_rho", "clipped_rho")
"""Names of the parts of impala_loss: three losses, weighted by their costs, which add up to the total; the mean entropy
of the target policy, in nats; the mean importance weight pi(a_t|x_t) / mu(a_t|x_t), not clipped, 1 on-policy; the share
of these weights that clip_rho_threshold cut.
"""


class LossPart(NamedTuple):
    """A number of a loss that is logged under its name."""

    value: Tensor
    """float32 scalar."""
    weighted_by: Literal["loss", "transitions", "sum"] = "loss"
    """Reduction over the batches of several ranks: "loss" as the total, by loss_reduction; "transitions" for a mean
    over valid transitions; "sum" adds.
    """


class _Estimates(NamedTuple):
    """V-trace of a batch, without gradients."""

    vs: Tensor
    """float32 [T, B]: v_t."""
    advantages: Tensor
    """float32 [T, B]: r_t + gamma_t v_{t+1} - V(x_t); 0 if invalid."""
    log_rhos: Tensor
    """float32 [T, B]: log rho_t, not clipped; 0 if invalid."""


class LossOutput(NamedTuple):
    """The result of a loss."""

    total: Tensor
    """The loss to minimize, a float32 scalar; the only field with a gradient."""
    parts: Mapping[str, LossPart] = MappingProxyType({})
    """Further numbers by name, to log: always the same names."""
    value_targets: Tensor | None = None
    """float32 [T, B], without a gradient: v_t. Required only by --normalise-values."""


def impala_loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    """Returns the loss of one batch: the sum or the mean over its valid transitions, depending on loss_reduction.

    A policy may mask actions with the logit -inf; an action that only the target policy masks has the weight rho 0.
    Invalid transitions contribute nothing: a batch padded with them has the gradients of the batch without padding.

    Args:
        output: the target model's outputs at all rows, policy_logits [T+1, B, A] and baseline [T+1, B].
        rollout: the batch of B unrolls of T transitions.
        config: settings of the loss.
        entropy_cost: float32 scalar, the schedule's value; replaces config.entropy_cost.
    """
    valid, distribution = rollout.valid, rollout.distribution
    # Masked before any arithmetic: the gradient of a masked result is NaN if its argument is NaN or infinite.
    policy_logits = output.policy_logits[: rollout.unroll_length].masked_fill(~valid.unsqueeze(-1), 0.0)
    baseline = output.baseline[: rollout.unroll_length]
    if rollout.value_targets is None:
        estimates = _estimates(policy_logits, output.baseline, rollout, config)
    else:
        estimates = _with_present_weights(policy_logits, rollout)

    action = rollout.action.masked_fill(~valid.unsqueeze(-1) if distribution.action_shape else ~valid, 0)
    # A masked action has the logarithm -inf, and 0 * -inf is NaN: the lowest number keeps its terms and gradients at 0.
    log_probs = distribution.log_prob(policy_logits, action).clamp(min=torch.finfo(policy_logits.dtype).min)
    baseline_errors = (estimates.vs - baseline).masked_fill(~valid, 0.0)
    advantages = estimates.advantages
    if rollout.value_scale is not None:
        baseline_errors, advantages = baseline_errors / rollout.value_scale, advantages / rollout.value_scale
    entropies = distribution.entropy(policy_logits).masked_fill(~valid, 0.0)

    num_transitions = valid.sum()
    mean_scale = num_transitions.clamp(min=1).reciprocal()
    if config.normalise_advantages:  # before the weights: subtracting a mean afterwards would move the policy
        advantages = _normalised(advantages, valid)
    rhos = estimates.log_rhos.exp().masked_fill(~valid, 0.0)
    if config.clip_policy_ratio is not None:
        advantages = _within_trust(advantages, rhos, config.clip_policy_ratio)
    pg_advantages = vtrace.clipped(rhos, config.clip_pg_rho_threshold) * advantages
    scale = mean_scale if config.loss_reduction == "mean" else 1.0
    pg_loss = -scale * (log_probs * pg_advantages).sum()
    baseline_loss = scale * config.baseline_cost * 0.5 * baseline_errors.square().sum()
    entropy_loss = -scale * entropy_cost * entropies.sum()

    return LossOutput(
        total=pg_loss + baseline_loss + entropy_loss,
        parts={
            "pg_loss": LossPart(pg_loss.detach()),
            "baseline_loss": LossPart(baseline_loss.detach()),
            "entropy_loss": LossPart(entropy_loss.detach()),
            "entropy": LossPart(mean_scale * entropies.sum().detach(), "transitions"),
            "mean_rho": LossPart(mean_scale * rhos.sum(), "transitions"),
            "clipped_rho": LossPart(mean_scale * _num_clipped(rhos, config.clip_rho_threshold), "transitions"),
        },
        value_targets=estimates.vs,
    )


def estimate(output: ModelOutput, rollout: Rollout, config: LossConfig) -> Rollout:
    """Returns a batch with the value_targets and advantages of the present weights, for losses of its parts.

    Args:
        output: the target model's outputs at all rows.
        rollout: the whole batch.
        config: settings of the loss.
    """
    estimates = _estimates(output.policy_logits[:-1], output.baseline, rollout, config)
    return replace(rollout, value_targets=estimates.vs, advantages=estimates.advantages)


def _estimates(policy_logits: Tensor, baseline: Tensor, rollout: Rollout, config: LossConfig) -> _Estimates:
    rewards, discounts = _rewards_and_discounts(rollout, config)
    values = baseline.detach()
    returns = vtrace.from_logits(
        behavior_policy_logits=rollout.policy_logits,
        target_policy_logits=policy_logits,
        actions=rollout.action,
        discounts=discounts,
        rewards=rewards,
        values=values[:-1],
        bootstrap_value=values[-1],
        clip_rho_threshold=config.clip_rho_threshold,
        clip_pg_rho_threshold=config.clip_pg_rho_threshold,
        valid=rollout.valid,
        clip_c_threshold=config.clip_c_threshold,
        lambda_=config.vtrace_lambda,
        distribution=rollout.distribution,
    )
    advantages = vtrace.advantages(returns.vs, discounts, rewards, values[:-1], values[-1])
    return _Estimates(returns.vs, advantages.masked_fill(~rollout.valid, 0.0), returns.log_rhos)


def _with_present_weights(policy_logits: Tensor, rollout: Rollout) -> _Estimates:
    """Returns the estimates of a minibatch with the weights of the policy as it is now."""
    assert rollout.value_targets is not None
    assert rollout.advantages is not None
    weights = vtrace.importance_weights(
        rollout.policy_logits, policy_logits, rollout.action, rollout.valid, distribution=rollout.distribution
    )
    return _Estimates(rollout.value_targets, rollout.advantages, weights.log_rhos)


def _rewards_and_discounts(rollout: Rollout, config: LossConfig) -> tuple[Tensor, Tensor]:
    rewards = clip_rewards(config.reward_scale * rollout.rewards[1:], config.reward_clipping)
    return rewards, config.discounting * (~rollout.terminated[1:]).float()


def _normalised(advantages: Tensor, valid: Tensor) -> Tensor:
    """Scales to mean 0 and variance 1 over the valid advantages of all ranks; invalid ones become 0."""
    num_valid, total = sum_over_ranks(torch.stack([valid.sum(), advantages.sum()]))
    mean_scale = num_valid.clamp(min=1).reciprocal()
    centred = (advantages - mean_scale * total).masked_fill(~valid, 0.0)
    variance = mean_scale * sum_over_ranks(centred.square().sum())
    normalised: Tensor = centred * (variance + _VARIANCE_EPSILON).rsqrt()
    return normalised


def _within_trust(advantages: Tensor, rhos: Tensor, epsilon: float) -> Tensor:
    """Sets advantages to 0 if the policy has already moved by more than epsilon in their direction: the gradient of
    PPO's clipped objective (Schulman et al. 2017, arXiv:1707.06347, equation 7).
    """
    too_far = torch.where(advantages > 0, rhos > 1.0 + epsilon, rhos < 1.0 - epsilon)
    return advantages.masked_fill(too_far, 0.0)


def _num_clipped(rhos: Tensor, threshold: float | None) -> Tensor:
    return rhos.new_zeros(()) if threshold is None else (rhos > threshold).sum()


def clip_rewards(rewards: Tensor, clipping: Literal["abs_one", "soft_asymmetric", "none"]) -> Tensor:
    """Returns clipped rewards for the loss.

    Args:
        rewards: float tensor of any shape.
        clipping: abs_one clips to [-1, 1]; soft_asymmetric is 5 tanh(r / 5), times 0.3 if negative, as in
            https://github.com/google-deepmind/scalable_agent; none returns the rewards unchanged.
    """
    if clipping == "abs_one":
        return rewards.clamp(-1, 1)
    if clipping == "soft_asymmetric":
        squeezed = 5.0 * torch.tanh(rewards / 5.0)
        return torch.where(rewards < 0, 0.3 * squeezed, squeezed)
    return rewards


def policy_lag(policy_version: Tensor, valid: Tensor, version: int | Tensor) -> Tensor:
    """Returns the mean number of updates from the weights that acted to `version`, over valid transitions: scalar."""
    lags = (version - policy_version).masked_fill(~valid, 0)
    return lags.sum(dtype=torch.float32) / valid.sum().clamp(min=1)
