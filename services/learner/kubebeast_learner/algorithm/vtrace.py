"""V-trace: off-policy corrected value targets and policy-gradient advantages.

Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures", 2018,
https://arxiv.org/abs/1802.01561: equation (1), the recursion of Remark 1, and the gradient of section 4.2.

Notation: T transitions, B unrolls, A actions. Arrays are time-major. mu is the behavior policy that acted, pi the
target policy that is trained. Gradients do not flow through the results of these functions, except those of
`action_log_probs`.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kubebeast_learner.distributions import ActionDistribution


class VTraceReturns(NamedTuple):
    """Results of `from_importance_weights`."""

    vs: Tensor
    """float [T, B]: value targets, v_t in the paper."""
    pg_advantages: Tensor
    """float [T, B]: weights of the policy gradient, rho_t (r_t + gamma v_{t+1} - V(x_t))."""


class ImportanceWeights(NamedTuple):
    """Results of `importance_weights`, without gradients."""

    log_rhos: Tensor
    """float [T, B]: log pi(a_t|x_t) - log mu(a_t|x_t), not clipped; 0 if invalid."""
    behavior_action_log_probs: Tensor
    """float [T, B]: log mu(a_t|x_t); 0 if invalid."""
    target_action_log_probs: Tensor
    """float [T, B]: log pi(a_t|x_t); 0 if invalid."""


class VTraceFromLogitsReturns(NamedTuple):
    """Results of `from_logits`."""

    vs: Tensor
    """float [T, B]: value targets, v_t in the paper."""
    pg_advantages: Tensor
    """float [T, B]: weights of the policy gradient, rho_t (r_t + gamma v_{t+1} - V(x_t))."""
    log_rhos: Tensor
    """float [T, B]: log pi(a_t|x_t) - log mu(a_t|x_t), not clipped; 0 if invalid."""
    behavior_action_log_probs: Tensor
    """float [T, B]: log mu(a_t|x_t); 0 if invalid."""
    target_action_log_probs: Tensor
    """float [T, B]: log pi(a_t|x_t); 0 if invalid."""


def action_log_probs(policy_logits: Tensor, actions: Tensor) -> Tensor:
    """Returns log softmax(policy_logits)[actions], float [*]. Differentiable.

    Args:
        policy_logits: float [*, A].
        actions: int64 [*].

    Raises:
        ValueError: if the shapes do not match.
    """
    if policy_logits.shape[:-1] != actions.shape:
        raise ValueError(f"actions has shape {_shape(actions)}, it must be policy_logits' {_shape(policy_logits)[:-1]}")
    return F.log_softmax(policy_logits, dim=-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def from_logits(
    behavior_policy_logits: Tensor,
    target_policy_logits: Tensor,
    actions: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    clip_rho_threshold: float | None = 1.0,
    clip_pg_rho_threshold: float | None = 1.0,
    valid: Tensor | None = None,
    *,
    clip_c_threshold: float | None = 1.0,
    lambda_: float = 1.0,
    distribution: ActionDistribution | None = None,
) -> VTraceFromLogitsReturns:
    """Computes V-trace for policies with joint log-probabilities given by policy_logits.

    Arguments not listed here are those of `from_importance_weights`.

    Args:
        behavior_policy_logits: float [T, B, A], logits of mu.
        target_policy_logits: float [T, B, A], logits of pi.
        actions: [T, B, *action_shape]; int64 [T, B] for one Discrete choice.
        distribution: interpretation of the logits; None is the softmax of one Discrete choice.

    Raises:
        ValueError: if an argument has the wrong shape, or a threshold or lambda_ is out of range.
        TypeError: if an argument has the wrong dtype.
    """
    weights = importance_weights(
        behavior_policy_logits, target_policy_logits, actions, valid, distribution=distribution
    )
    returns = from_importance_weights(
        weights.log_rhos,
        discounts,
        rewards,
        values,
        bootstrap_value,
        clip_rho_threshold,
        clip_pg_rho_threshold,
        valid,
        clip_c_threshold=clip_c_threshold,
        lambda_=lambda_,
    )
    return VTraceFromLogitsReturns(*returns, *weights)


@torch.no_grad()
def importance_weights(
    behavior_policy_logits: Tensor,
    target_policy_logits: Tensor,
    actions: Tensor,
    valid: Tensor | None = None,
    *,
    distribution: ActionDistribution | None = None,
) -> ImportanceWeights:
    """Computes the importance weights of transitions; arguments and errors are those of `from_logits`."""
    log_probs = action_log_probs if distribution is None else distribution.log_prob
    action_shape = () if distribution is None else distribution.action_shape
    if behavior_policy_logits.ndim != 3:
        raise ValueError(f"behavior_policy_logits has shape {_shape(behavior_policy_logits)}, it must be [T, B, A]")
    _check(behavior_policy_logits, "behavior_policy_logits", behavior_policy_logits.shape)
    _check(target_policy_logits, "target_policy_logits", behavior_policy_logits.shape)
    _check(actions, "actions", torch.Size((*behavior_policy_logits.shape[:2], *action_shape)), action_shape != ())
    if valid is not None:
        _check(valid, "valid", behavior_policy_logits.shape[:2], floating=False)
        # Padding may hold anything, NaN and actions out of range included; it must not reach the softmax.
        padding = ~valid.unsqueeze(-1)
        behavior_policy_logits = behavior_policy_logits.masked_fill(padding, 0.0)
        target_policy_logits = target_policy_logits.masked_fill(padding, 0.0)
        actions = actions.masked_fill(padding if action_shape else ~valid, 0)
    behavior = log_probs(behavior_policy_logits, actions)
    target = log_probs(target_policy_logits, actions)
    if valid is not None:
        behavior, target = behavior.masked_fill(~valid, 0.0), target.masked_fill(~valid, 0.0)
    return ImportanceWeights(target - behavior, behavior, target)


@torch.no_grad()
def from_importance_weights(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    clip_rho_threshold: float | None = 1.0,
    clip_pg_rho_threshold: float | None = 1.0,
    valid: Tensor | None = None,
    *,
    clip_c_threshold: float | None = 1.0,
    lambda_: float = 1.0,
) -> VTraceReturns:
    """Computes V-trace from log importance weights.

    Args:
        log_rhos: float [T, B], log pi(a_t|x_t) / mu(a_t|x_t).
        discounts: float [T, B], gamma, or 0 if transition t terminates its episode.
        rewards: float [T, B], received on arrival at x_{t+1}.
        values: float [T, B], V(x_t).
        bootstrap_value: float [B], V(x_T).
        clip_rho_threshold: rho bar in the paper; None: not clipped.
        clip_pg_rho_threshold: rho bar for the advantages; None: not clipped.
        valid: bool [T, B], all true by default. An invalid transition does not join two rows of one episode: rho_t and
            c_t are 0, so that vs_t = V(x_t) and pg_advantages_t = 0; its rewards, log_rhos and discounts are ignored.
        clip_c_threshold: c bar in the paper; None: not clipped.
        lambda_: lambda of Remark 2; c_t = lambda min(c bar, rho_t).

    Raises:
        ValueError: if an argument has the wrong shape, or a threshold or lambda_ is out of range.
        TypeError: if an argument has the wrong dtype.
    """
    _check(log_rhos, "log_rhos", log_rhos.shape)
    if log_rhos.ndim != 2:
        raise ValueError(f"log_rhos has shape {_shape(log_rhos)}, it must be [T, B]")
    for name, argument in (("discounts", discounts), ("rewards", rewards), ("values", values)):
        _check(argument, name, log_rhos.shape)
    _check(bootstrap_value, "bootstrap_value", log_rhos.shape[1:])
    for name, threshold in (
        ("clip_rho_threshold", clip_rho_threshold),
        ("clip_pg_rho_threshold", clip_pg_rho_threshold),
        ("clip_c_threshold", clip_c_threshold),
    ):
        if threshold is not None and threshold < 0:
            raise ValueError(f"{name} = {threshold}: must not be negative")
    if not 0 <= lambda_ <= 1:
        raise ValueError(f"lambda_ = {lambda_}: must lie in [0, 1]")

    rhos = log_rhos.exp()
    if valid is not None:
        _check(valid, "valid", log_rhos.shape, floating=False)
        rhos, rewards, discounts = (x.masked_fill(~valid, 0.0) for x in (rhos, rewards, discounts))
    clipped_rhos = clipped(rhos, clip_rho_threshold)
    cs = lambda_ * clipped(rhos, clip_c_threshold)

    next_values = torch.cat([values[1:], bootstrap_value.unsqueeze(0)])
    deltas = clipped_rhos * (rewards + discounts * next_values - values)
    if valid is not None:
        # 0 * NaN is NaN: an overflow in the values of padding must not spread along the recursion.
        deltas = deltas.masked_fill(~valid, 0.0)

    vs = values + _backward_sums(deltas, discounts * cs)
    pg_advantages = clipped(rhos, clip_pg_rho_threshold) * advantages(vs, discounts, rewards, values, bootstrap_value)
    if valid is not None:
        pg_advantages = pg_advantages.masked_fill(~valid, 0.0)
    return VTraceReturns(vs, pg_advantages)


def advantages(vs: Tensor, discounts: Tensor, rewards: Tensor, values: Tensor, bootstrap_value: Tensor) -> Tensor:
    """Returns r_t + gamma_t v_{t+1} - V(x_t), float [T, B]; arguments as in `from_importance_weights`."""
    next_vs = torch.cat([vs[1:], bootstrap_value.unsqueeze(0)])
    return rewards + discounts * next_vs - values


def clipped(rhos: Tensor, threshold: float | None) -> Tensor:
    """Returns importance weights of at most `threshold`; None: not clipped."""
    return rhos if threshold is None else rhos.clamp(max=threshold)


def _backward_sums(deltas: Tensor, factors: Tensor) -> Tensor:
    """Returns x_t = deltas_t + factors_t x_{t+1} with x_T = 0, all [T, B]: v_t - V(x_t) of Remark 1."""
    total = torch.zeros_like(deltas[0])
    sums = []
    for delta, factor in zip(reversed(deltas.unbind()), reversed(factors.unbind()), strict=True):
        total = torch.addcmul(delta, factor, total)
        sums.append(total)
    return torch.stack(sums[::-1])


def _check(argument: Tensor, name: str, shape: torch.Size, floating: bool = True) -> None:
    if argument.shape != shape:
        raise ValueError(f"{name} has shape {_shape(argument)}, it must be {list(shape)}")
    if argument.is_floating_point() != floating:
        raise TypeError(f"{name} is {argument.dtype}, it must be {'floating point' if floating else 'bool or int64'}")


def _shape(argument: Tensor) -> list[int]:
    return list(argument.shape)
