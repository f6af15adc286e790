"""The learner: one update of the model for one batch of unrolls."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_learner.algorithm.loss_choice import make_loss
from kubebeast_learner.algorithm.losses import LossOutput, policy_lag
from kubebeast_learner.algorithm.optimizers import load_state, make_optimizer
from kubebeast_learner.algorithm.precision import (
    CompileChoice,
    PrecisionChoice,
    low_precision_dtype,
    should_compile,
    use_channels_last,
)
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.algorithm.schedules import entropy_cost_at, learning_rate_at
from kubebeast_learner.config import LossConfig, OptimizerConfig
from kubebeast_learner.models import Model
from kubebeast_learner.models.contract import require_choice
from kubebeast_learner.models.core import keep_cores_eager
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.ranks.gradients import with_summed_gradients
from kubebeast_learner.ranks.group import naming_lost_ranks, sum_over_ranks
from kubebeast_learner.ranks.turns import WHOLE, Share

_log = logging.getLogger(__name__)

MAX_SKIPPED_UPDATES = 10
"""Updates skipped in a row, for losses or gradients that are not finite, after which training stops."""

_Forward = Callable[[Rollout, Tensor], LossOutput]


class DivergedError(RuntimeError):
    """MAX_SKIPPED_UPDATES batches in a row gave a loss or a gradient that is not finite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateStats:
    """What one update did. impala's three losses are weighted by their costs and add up to total_loss."""

    total_loss: float
    pg_loss: float
    baseline_loss: float
    entropy_loss: float
    entropy: float
    """Mean entropy of the policy, in nats."""
    mean_rho: float
    """Mean importance weight, not clipped."""
    clipped_rho: float
    """Share of the importance weights that were clipped."""
    grad_norm: float
    """Global norm of the gradient before clipping."""
    policy_lag: float
    """Mean number of updates between the weights that acted and the weights that were updated, where not replayed."""
    num_transitions: int
    """Valid transitions in the batch that were not replayed: the env-steps it counts for."""
    learning_rate: float
    entropy_cost: float
    """Weight of the entropy bonus in this update."""
    version: int
    """The learner's version after this call."""
    skipped: bool
    """The loss or the gradient was not finite, nothing was changed."""


class Learner:
    """Owns the float32 weights, the optimizer and the version of the weights. For one thread.

    The model is moved to `device`, its low_precision_part computes in the chosen precision by autocast. Where a group
    of ranks is open, every rank has a learner and they remain alike: each update is that of the global batch.
    """

    def __init__(
        self,
        model: Model,
        optimizer: OptimizerConfig,
        loss: LossConfig,
        *,
        total_steps: int,
        device: torch.device | str = "cpu",
        precision: PrecisionChoice = "auto",
        compile: CompileChoice = "auto",
    ) -> None:
        """total_steps: env-steps over which learning rate and entropy cost follow their schedules."""
        self.device = torch.device(device)
        self.model = model
        use_channels_last(model, self.device)
        model.train()
        self.optimizer = make_optimizer(model.parameters(), optimizer)
        self.version = 0
        """Number of updates applied."""
        self.num_skipped = 0
        """Updates skipped since the start."""
        self.phases = PhaseTimes()
        self._skipped_in_a_row = 0
        self._max_grad_norm = optimizer.grad_norm_clipping or math.inf
        self._total_steps = total_steps
        self._optimizer_config = optimizer
        self._loss_config = loss
        self._loss = make_loss(loss)
        # A tensor filled in place: a number that changes would be compiled anew with every update.
        self._entropy_cost = torch.zeros((), device=self.device)
        self._low_precision_dtype = low_precision_dtype(precision, model, self.device)
        self._forward: _Forward = self._forward_eager
        if should_compile(compile, model, self.device):
            self._forward = _CompiledOrEager(self._forward_eager)
        self._forward = with_summed_gradients(model, self._forward)

    def update(self, rollout: Rollout, step: int, share: Share = WHOLE) -> UpdateStats:
        """One gradient step on a batch that lies on the learner's device; waits for the device once.

        step: env-steps trained on before this batch, where the schedules stand. share: what the batch is of the global
        batch, of which the result tells; every rank calls this at once, RankLostError when one does not.
        A batch whose loss or gradient is not finite changes nothing and is counted; raises DivergedError when
        MAX_SKIPPED_UPDATES of them come in a row, ModelSpecError at once where a policy had no action to choose.
        """
        learning_rate = learning_rate_at(step, self._total_steps, self._optimizer_config)
        entropy_cost = entropy_cost_at(step, self._total_steps, self._loss_config)
        self._entropy_cost.fill_(entropy_cost)
        self.optimizer.zero_grad()
        if self.model.popart is not None:
            scale = self.model.popart.scale
            chosen = scale.expand(1, rollout.batch_size) if rollout.task is None else scale[rollout.task]
            rollout = replace(rollout, value_scale=chosen)
        with self.phases.measure("forward"):
            loss = self._forward(rollout, self._entropy_cost)
        fresh = slice(rollout.batch_size - rollout.num_replayed)
        with self.phases.measure("backward"):
            weight = share.valid if self._loss_config.loss_reduction == "mean" else 1.0
            with naming_lost_ranks():
                (weight * loss.total).backward()  # type: ignore[no-untyped-call]
            gradients = [weight.grad for weight in self.model.parameters() if weight.grad is not None]
            grad_norm = nn.utils.get_total_norm(gradients)
            lag = policy_lag(rollout.policy_version[:, fresh], rollout.valid[:, fresh], self.version)
            scalars = [*loss.scalars().values(), rollout.valid[:, fresh].sum(), lag]
            of_all = _of_global_batch(scalars, weight, share)
            *losses, num_transitions, mean_lag, norm = torch.stack([*of_all, grad_norm]).tolist()

        skipped = not (math.isfinite(losses[0]) and math.isfinite(norm))
        if skipped:
            require_choice(rollout.policy_logits, rollout.valid)
            self._count_skipped(losses[0], norm)
        else:
            with self.phases.measure("optimizer"):
                if norm > self._max_grad_norm:
                    nn.utils.clip_grads_with_norm_(self.model.parameters(), self._max_grad_norm, grad_norm)
                self._step(learning_rate)
                self._normalise_by(rollout, fresh, loss.value_targets)
        values = dict(zip(loss.scalars(), losses, strict=True))
        return UpdateStats(
            total_loss=values["total"],
            pg_loss=values["pg_loss"],
            baseline_loss=values["baseline_loss"],
            entropy_loss=values["entropy_loss"],
            entropy=values["entropy"],
            mean_rho=values["mean_rho"],
            clipped_rho=values["clipped_rho"],
            grad_norm=norm,
            policy_lag=mean_lag,
            num_transitions=int(num_transitions),
            learning_rate=learning_rate,
            entropy_cost=entropy_cost,
            version=self.version,
            skipped=skipped,
        )

    def state_dict(self) -> dict[str, Any]:
        """Tensors, numbers and containers of them, loadable with weights_only: model, optimizer, version."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "version": self.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` returned, under this learner's own settings.

        RuntimeError names the weights that do not fit.
        """
        self.model.load_state_dict(state["model"])
        load_state(self.optimizer, state["optimizer"], self._optimizer_config)
        self.version = int(state["version"])
        self._skipped_in_a_row = 0

    def _forward_eager(self, rollout: Rollout, entropy_cost: Tensor) -> LossOutput:
        low_precision = self._low_precision_dtype != torch.float32
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=low_precision):
            output, _ = self.model(rollout.model_inputs, rollout.core_state)
        return self._loss(output, rollout, self._loss_config, entropy_cost)

    def _step(self, learning_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.version += 1
        self._skipped_in_a_row = 0

    def _normalise_by(self, rollout: Rollout, fresh: slice, value_targets: Tensor | None) -> None:
        """Takes observations that were acted on, and what values were trained towards, into the running statistics,
        where the model has them.
        """
        valid = rollout.valid[:, fresh]
        if self.model.normaliser is not None:
            leaves = [leaf[:-1, fresh] for leaf in rollout.observation]
            self.model.normaliser.add(leaves, valid)
        if self.model.popart is not None and value_targets is not None:
            task = None if rollout.task is None else rollout.task[0, fresh]
            self.model.popart.add(value_targets[:, fresh], valid, task)

    def _count_skipped(self, total_loss: float, grad_norm: float) -> None:
        self.num_skipped += 1
        self._skipped_in_a_row += 1
        _log.warning("update skipped: total_loss %s, gradient norm %s", total_loss, grad_norm)
        if self._skipped_in_a_row >= MAX_SKIPPED_UPDATES:
            raise DivergedError(
                f"{self._skipped_in_a_row} updates in a row had a loss or gradient that is not finite "
                f"(last: total_loss {total_loss}, gradient norm {grad_norm}): check rewards and observations for "
                "NaN, or lower the learning rate"
            )


def _of_global_batch(scalars: Sequence[Tensor], loss_weight: float, share: Share) -> Sequence[Tensor]:
    """Losses, means and counts of a rank's batch, in the order of LossOutput and then those of its fresh unrolls, as
    those of the global batch.
    """
    stacked = torch.stack([scalar.float() for scalar in scalars])
    if share is not WHOLE:
        weights = [loss_weight] * 4 + [share.valid] * 3 + [1.0, 1.0, share.fresh]
        stacked = sum_over_ranks(stacked * stacked.new_tensor(weights))
    return stacked.unbind()


class _CompiledOrEager:
    """A compiled function that turns eager, with one warning, when its first call cannot be compiled."""

    def __init__(self, function: _Forward) -> None:
        keep_cores_eager()
        self._eager = function
        self._function = torch.compile(function, dynamic=False)
        self._proven = False

    def __call__(self, rollout: Rollout, entropy_cost: Tensor) -> LossOutput:
        if self._proven:
            return self._function(rollout, entropy_cost)
        try:
            result = self._function(rollout, entropy_cost)
        except Exception as error:  # the compiler's own errors have no common base
            result = self._eager(rollout, entropy_cost)
            _log.warning("torch.compile failed, the update runs without it: %s", str(error).partition("\n")[0])
            self._function = self._eager
        self._proven = True
        return result
