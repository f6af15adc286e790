"""Optimizers: RMSProp, Adam, or a user's, module:Class; docs/models.md states its contract."""

import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_learner.algorithm.rmsprop import RMSprop
from kubebeast_learner.config import ConfigError, OptimizerConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object


def make_optimizer(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> torch.optim.Optimizer:
    """Returns the configured optimizer; the caller sets the learning rate of its groups before every step.

    Raises ConfigError if a user's cannot be loaded, does not take its options, or refuses the parameters.
    """
    if ":" in config.optimizer:
        return _make_own(parameters, config)
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=config.learning_rate, eps=config.epsilon, fused=True)
    return RMSprop(
        parameters,
        lr=config.learning_rate,
        alpha=config.alpha,
        eps=config.epsilon,
        momentum=config.momentum,
        foreach=True,
    )


def has_device_skip(optimizer: torch.optim.Optimizer) -> bool:
    """Returns True if `step_unless` takes this optimizer: Adam, and RMSProp without momentum."""
    if isinstance(optimizer, RMSprop):
        return optimizer.is_fused
    return type(optimizer) is torch.optim.Adam


def step_unless(is_bad: Tensor, optimizer: torch.optim.Optimizer, learning_rate: Tensor) -> None:
    """Makes a step with `learning_rate`, float32, unless `is_bad`, bool; both are scalars on the device of the weights.

    Does not wait for the device, as the fused kernels read both, in the way of torch.amp.GradScaler.
    """
    kept = [dict(group) for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group.update(lr=learning_rate, capturable=True)
    optimizer.found_inf = is_bad.float()  # type: ignore[attr-defined]
    try:
        optimizer.step()
    finally:
        del optimizer.found_inf  # type: ignore[attr-defined]
        for group, before in zip(optimizer.param_groups, kept, strict=True):
            group.update(lr=before["lr"], capturable=before["capturable"])


def check_optimizer(config: OptimizerConfig, model: nn.Module) -> None:
    """Tries a user's optimizer on copies of the parameters of `model`; raises ConfigError for a violation.

    A step needs no closure and leaves the weights finite; a checkpoint holds its state, which a new optimizer loads.
    """
    if ":" not in config.optimizer:
        return
    with torch.random.fork_rng(devices=[]):
        copies = [nn.Parameter(p.detach().clone(), requires_grad=p.requires_grad) for p in model.parameters()]
        optimizer, restored = make_optimizer(copies, config), make_optimizer(copies, config)
        for parameter in copies:
            parameter.grad = torch.full_like(parameter, 1e-3) if parameter.requires_grad else None
        try:
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate
            optimizer.step()
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            load_state(restored, torch.load(file, weights_only=True), config)
            restored.step()
        except Exception as error:  # the user's code may raise anything
            raise ConfigError(f"optimizer = {config.optimizer!r}: failed: {describe(error)}") from error
        if not all(parameter.isfinite().all() for parameter in copies):
            raise ConfigError(f"optimizer = {config.optimizer!r}: its first steps leave weights that are not finite")


def load_state(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any], config: OptimizerConfig) -> None:
    """Restores `saved`, a state_dict. RMSProp and Adam keep their own settings; a user's optimizer loads all of it,
    because its groups may hold more than settings.
    """
    if ":" in config.optimizer:
        optimizer.load_state_dict(dict(saved))
        return
    optimizer.load_state_dict({"state": saved["state"], "param_groups": optimizer.state_dict()["param_groups"]})
    for group in optimizer.param_groups:
        if group.get("momentum"):  # RMSProp makes the buffer in a parameter's first step only
            for parameter in group["params"]:
                state = optimizer.state[parameter]
                if "square_avg" in state:
                    state.setdefault("momentum_buffer", torch.zeros_like(parameter))


def _make_own(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> torch.optim.Optimizer:
    name, options = config.optimizer, parse_object("optimizer_options", config.optimizer_options)
    user_class = load_object("optimizer", name)
    if not (isinstance(user_class, type) and issubclass(user_class, torch.optim.Optimizer)):
        raise ConfigError(f"optimizer = {name!r}: must be a subclass of torch.optim.Optimizer, it is {user_class!r}")
    if "lr" in options:
        raise ConfigError(f"optimizer_options = {config.optimizer_options!r}: lr is the setting learning_rate")
    options["lr"] = config.learning_rate
    check_options("optimizer_options", config.optimizer_options, user_class, 1, options)
    make: Callable[..., torch.optim.Optimizer] = user_class
    try:
        return make(parameters, **options)
    except Exception as error:  # the user's code may raise anything
        what = f"{user_class.__name__}(parameters, lr={config.learning_rate})"
        raise ConfigError(f"optimizer = {name!r}: {what}: {describe(error)}") from error
