"""Choice of the loss: impala, or a user's function, module:function; docs/models.md states its contract."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import torch
from torch import Tensor

from kubebeast_learner.algorithm.losses import LossOutput, LossPart, impala_loss
from kubebeast_learner.algorithm.made_up import empty_rollout, made_up_rollout
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ConfigError, LossConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_learner.models import LeafSpec, Model, ModelOutput
from kubebeast_learner.models.contract import all_finite

LossFunction = Callable[[ModelOutput, Rollout, LossConfig, Tensor], LossOutput]
"""A loss of the model's output at all rows, the batch, the settings, and the weight of the entropy bonus, a float32
scalar. A user's function also takes loss_options, by name."""


MAX_PARTS = 32
_PART_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def make_loss(config: LossConfig) -> LossFunction:
    """Returns the configured loss. Raises ConfigError if a user's cannot be loaded, called or given its options."""
    if config.loss == "impala":
        return impala_loss
    loss: LossFunction = load_object("loss", config.loss)
    if not callable(loss):
        raise ConfigError(f"loss = {config.loss!r}: must be a function, it is {loss!r}")
    options = parse_object("loss_options", config.loss_options)
    check_options("loss_options", config.loss_options, loss, 4, options)
    return partial(loss, **options) if options else loss


def check_loss(
    config: LossConfig, model: Model, observation: Sequence[LeafSpec], *, several_ranks: bool = False
) -> None:
    """Tries a user's loss on made-up rows for `model`, which lies on the CPU; raises ConfigError for a violation.

    It must return a LossOutput of scalars with a finite total that gives the model a finite gradient; if there are
    several ranks, also for a batch without a valid transition, which a rank may have.
    """
    if config.loss == "impala":
        return
    _try_loss(config, model, made_up_rollout(model, observation), "on random rows")
    if several_ranks:
        _try_loss(config, model, empty_rollout(model, observation), "on a batch without a valid transition")


def _try_loss(config: LossConfig, model: Model, rollout: Rollout, where: str) -> None:
    with torch.random.fork_rng(devices=[]):
        output, _ = model(rollout.model_inputs, rollout.core_state)
        rollout = replace(rollout, action=model.distribution.mode(output.policy_logits[:-1]))  # never a masked action
        try:
            result = make_loss(config)(output, rollout, config, torch.tensor(config.entropy_cost))
        except ConfigError:
            raise
        except Exception as error:  # the user's code may raise anything
            raise ConfigError(f"loss = {config.loss!r}: failed: {describe(error)}") from error
        if violation := _violation(result, model, where):
            raise ConfigError(f"loss = {config.loss!r}: {violation}")


def _violation(result: object, model: Model, where: str) -> str | None:
    """Returns the violation in a loss's result, None if there is none."""
    if not isinstance(result, LossOutput):
        return f"must return a LossOutput, it returned {type(result).__name__}"
    if model.popart is not None and result.value_targets is None:
        return "value_targets are missing, which normalise_values needs"
    if violation := _violation_in_parts(result.parts):
        return violation
    scalars: Mapping[str, object] = {"total": result.total} | {name: part.value for name, part in result.parts.items()}
    for name, value in scalars.items():
        if not isinstance(value, Tensor) or value.ndim > 0:
            what = f"of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            return f"{name} must be a scalar tensor, it is {what}"
    if not result.total.isfinite():
        return f"total must be finite, it is {result.total.item()} {where}"
    if not result.total.requires_grad:
        return "total carries no gradient: is it detached, or made under no_grad?"
    gradients = torch.autograd.grad(result.total, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
    if not all_finite(gradients):
        return f"the gradient of total is not finite {where}"
    return None


def _violation_in_parts(parts: object) -> str | None:
    """Returns the violation in the names and kinds of parts, None if there is none."""
    if not isinstance(parts, Mapping):
        return f"parts must map names to LossParts, it is {parts!r:.100}"
    if len(parts) > MAX_PARTS:
        return f"parts has {len(parts)} entries, at most {MAX_PARTS} are logged"
    for name, part in parts.items():
        if not isinstance(name, str) or not _PART_NAME.fullmatch(name):
            return f"the part {name!r:.100} must be named by lower-case letters, digits and underscores, at most 40"
        if not isinstance(part, LossPart):
            return f"the part {name} must be a LossPart, it is {part!r:.100}"
        if part.weighted_by not in get_args(LossPart.__annotations__["weighted_by"]):
            return f"the part {name} must be weighted_by loss, transitions or sum, it is {part.weighted_by!r:.100}"
    return None
