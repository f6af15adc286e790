"""Trial of code of the user's own on the device "meta", on which tensors have shapes but no values.

It finds tensors that do not move to a GPU with the model, before anything starts and without a GPU:
https://docs.pytorch.org/docs/stable/meta.html
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from kubebeast_learner.algorithm.loss_choice import make_loss
from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.algorithm.optimizers import make_optimizer
from kubebeast_learner.algorithm.rollout import map_tensors
from kubebeast_learner.config import ConfigError, TrainingConfig
from kubebeast_learner.models import LeafSpec, Model

META = torch.device("meta")
_MIXED = "is not on the expected device"
"""Part of PyTorch's message about operands on different devices."""
_REMEDY = "register it as a buffer of the module, or make it on the device of the inputs"


def check_placement(
    config: TrainingConfig, model: Model, observation: Sequence[LeafSpec], *, trains: bool = True
) -> None:
    """Runs `model`, which lies on the CPU, the loss and the optimizer on META; raises ConfigError if one mixes devices.

    Code that looks at the values of tensors cannot run there, and is not checked.

    Args:
        trains: False if only inference runs on a GPU, which needs the model alone.
    """
    with torch.random.fork_rng(devices=[]):
        rollout = made_up_rollout(model, observation)
    on_meta = map_tensors(_to_meta, rollout)
    names = ", ".join(f"{each} = {name!r}" for each, name in config.user_code if each in ("model", "encoder"))
    with _refusing_mixed(names):
        moved = copy.deepcopy(model).to(META)
        output, core_state = moved(on_meta.model_inputs, moved.initial_state(rollout.batch_size))
        if any(each.device != META for each in (output.policy_logits, output.baseline, *core_state)):
            raise ConfigError(f"{names}: an output stays on the CPU: {_REMEDY}")
    if not trains:
        return
    with torch.no_grad():
        output, _ = model(rollout.model_inputs, rollout.core_state)
    with _refusing_mixed(f"loss = {config.loss.loss!r}"):
        output = output._make(map(_to_meta, output))
        make_loss(config.loss)(output, on_meta, config.loss, torch.zeros((), device=META))
    _check_step(config, moved)


def _check_step(config: TrainingConfig, moved: Model) -> None:
    """Makes a step of a user's optimizer on META."""
    if ":" not in config.optimizer.optimizer:
        return
    for parameter in moved.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    try:
        optimizer = make_optimizer(moved.parameters(), config.optimizer)
    except ConfigError:  # check_optimizer has made it on the CPU, so it looks at values
        return
    with _refusing_mixed(f"optimizer = {config.optimizer.optimizer!r}"):
        optimizer.step()


@contextmanager
def _refusing_mixed(name: str) -> Iterator[None]:
    """Context that raises ConfigError for an operation on two devices, and suppresses what else META cannot run."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # of operations without an implementation there, and of the user's code
        if _MIXED in str(error):
            raise ConfigError(f"{name}: computes with a tensor that stays on the CPU: {_REMEDY}") from error


def _to_meta(tensor: Tensor) -> Tensor:
    return tensor.to(META)
