"""Updates that are skipped because their loss or gradient is not finite: restored state, diagnosis and limit."""

import logging

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.models import Model
from kubebeast_learner.models.contract import require_choice
from kubebeast_learner.models.finite import first_not_finite, named_tensors, names_of_not_finite
from kubebeast_learner.models.popart import PopArt
from kubebeast_learner.models.scales.moments import Scale

_log = logging.getLogger(__name__)

MAX_SKIPPED_UPDATES = 10
"""Number of updates skipped in a row after which training stops."""


class DivergedError(RuntimeError):
    """MAX_SKIPPED_UPDATES batches in a row had no finite loss or gradient, or weights or optimizer are not finite."""


class SkippedUpdates:
    """Rows of skipped updates, of which a long one ends a training. Not thread-safe."""

    def __init__(self, model: Model, optimizer: torch.optim.Optimizer) -> None:
        self.made_not_finite = names_of_not_finite(model.state_dict().items())
        """Names of model tensors that are not finite by construction, such as masks of -inf."""
        self._model, self._optimizer = model, optimizer
        self._in_a_row = 0
        self._buffers = [buffer for module in model.modules() if _writes(module) for buffer in module.buffers(False)]
        self._kept: list[Tensor] = []

    def keep_buffers(self) -> None:
        """Saves the buffers before a forward pass, which may change them, as batch normalization does."""
        self._kept = [buffer.clone() for buffer in self._buffers]

    def end_row(self) -> None:
        """Ends the row of skipped updates, after a successful one."""
        self._in_a_row = 0

    def restore_buffers(self) -> None:
        """Restores what `keep_buffers` has saved."""
        for buffer, kept in zip(self._buffers, self._kept, strict=True):
            buffer.copy_(kept)

    def add(self, rollout: Rollout, total_loss: float, grad_norm: float) -> None:
        """Counts a skipped update.

        Raises DivergedError if no further update can help, ModelSpecError if the policy that acted had no action to
        choose.
        """
        require_choice(rollout.policy_logits, rollout.valid)
        self._in_a_row += 1
        largest = _describe_largest(rollout, self._model)
        _log.warning("update skipped: total_loss %s, gradient norm %s; %s", total_loss, grad_norm, largest)
        state = {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict()}
        allowed = [f"model.{name}" for name in self.made_not_finite]
        if found := first_not_finite(named_tensors(state), allowed):
            raise DivergedError(f"{found}: no update can mend that, the run's newest checkpoint can")
        if self._in_a_row >= MAX_SKIPPED_UPDATES:
            raise DivergedError(
                f"{self._in_a_row} updates in a row had a loss or gradient that is not finite (last: total_loss "
                f"{total_loss}, gradient norm {grad_norm}; {largest}): scale large values to a "
                "size near 1 (normalise_observations, reward_scale, reward_clipping, normalise_values, or a wrapper), "
                "or lower the learning rate"
            )


def _writes(module: torch.nn.Module) -> bool:
    """Returns True if a forward pass may change the module's buffers: running statistics change only after updates."""
    return not isinstance(module, Scale | PopArt)


def _describe_largest(rollout: Rollout, model: Model) -> str:
    """Describes the largest absolute reward and the largest absolute number of an observation in valid transitions."""
    valid = rollout.valid
    none = torch.zeros_like(valid[:1])
    rows = torch.cat([valid, none]) | torch.cat([none, valid])
    numbers = {}
    for index, leaf in enumerate(rollout.observation):
        if leaf.is_floating_point():
            name = model.observation_names[index] if model.observation_names else f"leaf {index}"
            numbers[f"in the observation {name}"] = leaf[rows].abs().amax().item() if rows.any() else 0.0
    rewards = rollout.rewards[1:].masked_fill(~valid, 0.0).abs()
    found = [f"the largest reward is {rewards.amax().item():g}"]
    if numbers:
        where = max(numbers, key=lambda name: numbers[name])
        found.append(f"the largest number {where} is {numbers[where]:g}")
    return ", ".join(found)
