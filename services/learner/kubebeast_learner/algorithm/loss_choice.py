"""Which loss is minimised: ours, or a user's function, module:function; docs/models.md states its contract."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ConfigError, LossConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_learner.models import LeafSpec, Model, ModelOutput
from kubebeast_learner.models.contract import all_finite
from kubebeast_learner.models.dummy import dummy_inputs

LossFunction = Callable[[ModelOutput, Rollout, LossConfig, Tensor], LossOutput]
"""The model's output at all rows, the batch, the settings, and the weight of the entropy bonus, a float32 scalar.
A user's function takes loss_options besides, by name."""

T, B = 3, 2


def make_loss(config: LossConfig) -> LossFunction:
    """The configured loss. ConfigError when a user's cannot be loaded, is no function or does not take its options."""
    if config.loss == "impala":
        return impala_loss
    loss: LossFunction = load_object("loss", config.loss)
    if not callable(loss):
        raise ConfigError(f"loss = {config.loss!r}: must be a function, it is {loss!r}")
    options = parse_object("loss_options", config.loss_options)
    check_options("loss_options", config.loss_options, loss, 4, options)
    return partial(loss, **options) if options else loss


def check_loss(config: LossConfig, model: Model, observation: Sequence[LeafSpec]) -> None:
    """Tries a user's loss on made-up rows for `model`, which lies on the CPU; ConfigError says what it does wrong.

    It must return a LossOutput of scalars, whose total is finite and gives the model a finite gradient.
    """
    if config.loss == "impala":
        return
    with torch.random.fork_rng(devices=[]):
        rollout = _dummy_rollout(model, observation)
        output, _ = model(rollout.model_inputs, rollout.core_state)
        rollout = replace(rollout, action=model.distribution.mode(output.policy_logits[:-1]))  # none that it masks
        try:
            result = make_loss(config)(output, rollout, config, torch.tensor(config.entropy_cost))
        except ConfigError:
            raise
        except Exception as error:  # the user's code may raise anything
            raise ConfigError(f"loss = {config.loss!r}: failed: {describe(error)}") from error
        if violation := _violation(result, model):
            raise ConfigError(f"loss = {config.loss!r}: {violation}")


def _violation(result: object, model: Model) -> str | None:
    """What is wrong with a loss's result; None when nothing is."""
    if not isinstance(result, LossOutput):
        return f"must return a LossOutput, it returned {type(result).__name__}"
    if model.popart is not None and result.value_targets is None:
        return "value_targets are missing, which normalise_values needs"
    for name, value in result.scalars().items():
        if not isinstance(value, Tensor) or value.ndim > 0:
            what = f"of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            return f"{name} must be a scalar tensor, it is {what}"
    if not result.total.isfinite():
        return f"total must be finite, it is {result.total.item()} on random rows"
    if not result.total.requires_grad:
        return "total carries no gradient: is it detached, or made under no_grad?"
    gradients = torch.autograd.grad(result.total, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
    if not all_finite(gradients):
        return "the gradient of total is not finite on random rows"
    return None


def _dummy_rollout(model: Model, observation: Sequence[LeafSpec]) -> Rollout:
    """Two unrolls: one inside an episode, one whose episode terminates at row 1 and is followed by the next."""
    rows = dummy_inputs(observation, model.distribution, T + 1, B, num_tasks=model.num_tasks)
    ended = torch.zeros(T + 1, B, dtype=torch.bool)
    ended[1, 1] = True
    return Rollout(
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
