"""The learner: one update of the model for one batch of unrolls."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from kubebeast_learner.algorithm.execution.compiled import CompiledOrEager
from kubebeast_learner.algorithm.execution.update_graphs import UpdateGraphs
from kubebeast_learner.algorithm.loss_choice import make_loss
from kubebeast_learner.algorithm.losses import LossOutput, policy_lag
from kubebeast_learner.algorithm.optimizers import has_device_skip, load_state, make_optimizer, step_unless
from kubebeast_learner.algorithm.precision import (
    CompileChoice,
    PrecisionChoice,
    choose_fastest_convolutions,
    compute_in_float32,
    low_precision_dtype,
    should_compile,
    use_channels_last,
)
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.algorithm.schedules import entropy_cost_at, learning_rate_at
from kubebeast_learner.algorithm.skipped import MAX_SKIPPED_UPDATES as MAX_SKIPPED_UPDATES
from kubebeast_learner.algorithm.skipped import DivergedError as DivergedError
from kubebeast_learner.algorithm.skipped import SkippedUpdates
from kubebeast_learner.algorithm.statistics import Statistics
from kubebeast_learner.config import LossConfig, OptimizerConfig
from kubebeast_learner.machine.cuda_graph import Recorder, eager
from kubebeast_learner.models import Model
from kubebeast_learner.models.finite import MADE_NOT_FINITE
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.ranks.gradients import SummedGradients
from kubebeast_learner.ranks.group import ending_waits, sum_over_ranks
from kubebeast_learner.ranks.turns import WHOLE, Share

_Forward = Callable[[Rollout, Tensor], LossOutput]

_TOTAL, _NORM, _NUM_FRESH, _LAG, _FIRST_PART = range(5)
"""Places of an update's numbers. The parts of the loss follow, then the extremes of the statistics."""
_CLIP_EPSILON = 1e-6
"""Added to the norm by torch.nn.utils.clip_grads_with_norm_."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateStats:
    """Results of one update."""

    total_loss: float
    parts: Mapping[str, float]
    """Parts of the loss by name, see LossOutput; losses.IMPALA_PARTS describes those of impala."""
    grad_norm: float
    """Global norm of the gradient before clipping."""
    policy_lag: float
    """Mean number of updates between the weights that acted and the updated ones, over transitions not replayed."""
    num_transitions: int
    """Env-steps of the batch: its valid transitions that were not replayed; 0 if the update was skipped."""
    learning_rate: float
    entropy_cost: float
    """Weight of the entropy bonus in this update."""
    version: int
    """The learner's version after this call."""
    skipped: bool
    """True if the loss or the gradient was not finite; nothing was changed."""


class Learner:
    """The owner of the float32 weights, the optimizer and the version of the weights. Not thread-safe.

    The model is moved to `device`; its low_precision_part computes in the chosen precision by autocast. If a group of
    ranks is open, every rank has a learner and all stay equal: each update is that of the global batch.
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
        recorder: Recorder | None = None,
    ) -> None:
        """Builds the optimizer and the loss, and moves the model to `device`.

        Args:
            model: updated in place.
            optimizer: settings of the optimizer and of the learning rate's schedule.
            loss: settings of the loss and of the entropy cost's schedule.
            total_steps: env-steps over which learning rate and entropy cost follow their schedules.
            device: device of the weights and of the batches.
            precision: arithmetic of the model's low_precision_part; auto is bfloat16 if it is worthwhile.
            compile: use of torch.compile; auto compiles on a GPU without a recorder unless the model is recurrent.
            recorder: records updates that have no other rank, to start each by one call; None for eager updates.

        Raises:
            ConfigError: if a user's optimizer or loss cannot be loaded or does not take its options.
        """
        self.device = torch.device(device)
        self.model = model
        compute_in_float32()
        use_channels_last(model, self.device)
        model.train()
        self.optimizer = make_optimizer(model.parameters(), optimizer)
        self.version = 0
        """Number of updates applied."""
        self.phases = PhaseTimes()
        self._skipped = SkippedUpdates(model, self.optimizer)
        self._statistics = Statistics(model, loss)
        self._max_grad_norm = optimizer.grad_norm_clipping or math.inf
        self._total_steps = total_steps
        self._optimizer_config = optimizer
        self._loss_config = loss
        self._loss = make_loss(loss)
        self._part_names: tuple[str, ...] = ()
        """Names of the loss's parts, in the order of their numbers; known after the first forward pass."""
        # A tensor filled in place: a changing number would be recompiled with every update.
        self._entropy_cost = torch.zeros((), device=self.device)
        self._low_precision_dtype = low_precision_dtype(precision, model, self.device)
        self._forward: _Forward = self._forward_eager
        uses_graphs = recorder is not None and has_device_skip(self.optimizer)
        if should_compile(compile, model, self.device, uses_graphs=uses_graphs):
            self._forward = CompiledOrEager(self._forward_eager, model)
        self._gradients = SummedGradients(model, self._forward)
        self._graphs = None
        if recorder is not None and uses_graphs:
            choose_fastest_convolutions()
            self._graphs = UpdateGraphs(self._update_on_device, recorder)
        self._changed_by_statistics = [*model.buffers(), *(model.popart.parameters() if model.popart else ())]
        self._learning_rate = torch.zeros((), device=self.device)
        self._version_on_device = torch.zeros((), dtype=torch.int64, device=self.device)

    def update(
        self, rollout: Rollout, step: int, share: Share = WHOLE, meanwhile: Callable[[], None] | None = None
    ) -> UpdateStats:
        """Makes one gradient step on a batch that lies on the learner's device; waits for the device once.

        A batch with a loss or gradient that is not finite changes nothing and is counted. All ranks call this together.

        Args:
            rollout: the batch, with whole stacks.
            step: env-steps trained on before this batch, which determine the values of the schedules.
            share: share of the batch in the global batch, to which the result refers.
            meanwhile: called while the device computes, if the update is a CUDA graph.

        Raises:
            DivergedError: after MAX_SKIPPED_UPDATES skipped updates in a row, or if the weights
                or the optimizer's state are not finite.
            ModelSpecError: if the batch was skipped and the policy that acted masked all actions of a row.
            RankLostError: if another rank does not call this.
        """
        learning_rate = learning_rate_at(step, self._total_steps, self._optimizer_config)
        entropy_cost = entropy_cost_at(step, self._total_steps, self._loss_config)
        self._entropy_cost.fill_(entropy_cost)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        numbers = self._update_by_graph(rollout, learning_rate, meanwhile) if share is WHOLE else None
        if numbers is None:
            numbers = self._update_eagerly(rollout, share)
        end_of_parts = _FIRST_PART + len(self._part_names)
        parts = dict(zip(self._part_names, numbers[_FIRST_PART:end_of_parts], strict=True))
        skipped = not _is_finite(numbers)
        if skipped:
            self._skipped.add(rollout, numbers[_TOTAL], numbers[_NORM])
        else:
            self.version += 1
            self._skipped.end_row()
            self._statistics.say(numbers[end_of_parts:])
        return UpdateStats(
            total_loss=numbers[_TOTAL],
            parts=parts,
            grad_norm=numbers[_NORM],
            policy_lag=numbers[_LAG],
            num_transitions=0 if skipped else int(numbers[_NUM_FRESH]),
            learning_rate=learning_rate,
            entropy_cost=entropy_cost,
            version=self.version,
            skipped=skipped,
        )

    def state_dict(self) -> dict[str, Any]:
        """Returns tensors, plain values and containers of them, loadable with weights_only: model, optimizer, version,
        and the names of the model's tensors that are not finite by construction, such as masks.
        """
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "version": self.version,
            MADE_NOT_FINITE: self._skipped.made_not_finite,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state of `state_dict`; this learner keeps its own settings.

        Raises:
            RuntimeError: if weights, which the message names, do not fit.
        """
        self.model.load_state_dict(state["model"])
        load_state(self.optimizer, state["optimizer"], self._optimizer_config)
        self.version = int(state["version"])
        self._skipped.end_row()

    def _update_eagerly(self, rollout: Rollout, share: Share) -> list[float]:
        """Makes an update whose optimizer waits for the numbers; returns those of `_differentiate`."""
        self.optimizer.zero_grad()
        self._skipped.keep_buffers()
        fresh = _fresh(rollout)
        with ending_waits(self.device), eager(self.device):
            with self.phases.measure("forward"):
                self._statistics.begin(rollout, fresh, self._value_targets)
                rollout = self._with_value_scale(rollout)
                loss = self._gradients(rollout, self._entropy_cost)
            with self.phases.measure("backward"):
                grad_norm, on_device = self._differentiate(loss, rollout, self.version, share)
                numbers: list[float] = on_device.tolist()
        if not _is_finite(numbers):
            self._skipped.restore_buffers()
            return numbers
        with self.phases.measure("optimizer"):
            if numbers[_NORM] > self._max_grad_norm:
                nn.utils.clip_grads_with_norm_(self.model.parameters(), self._max_grad_norm, grad_norm)
            self.optimizer.step()
            self._statistics.take(rollout, fresh, loss.value_targets)
        return numbers

    def _update_by_graph(
        self, rollout: Rollout, learning_rate: float, meanwhile: Callable[[], None] | None
    ) -> list[float] | None:
        """Makes an update by a graph, if there is one for the batch; returns the numbers of `_differentiate`."""
        if self._graphs is None or not self._statistics.has_begun:
            return None
        self._learning_rate.fill_(learning_rate)
        self._version_on_device.fill_(self.version)
        with self.phases.measure("forward"):
            wait = self._graphs.start(rollout)
        if wait is None:
            return None
        if meanwhile is not None:
            meanwhile()
        with self.phases.measure("backward"):
            return wait()

    def _update_on_device(self, rollout: Rollout) -> Tensor:
        """Makes an update without waiting for the device; returns the numbers of `_differentiate`.

        Changes nothing if the loss or the gradient is not finite.
        """
        self.optimizer.zero_grad()
        kept = [tensor.detach().clone() for tensor in self._changed_by_statistics]
        rollout = self._with_value_scale(rollout)
        loss = self._gradients(rollout, self._entropy_cost)
        grad_norm, numbers = self._differentiate(loss, rollout, self._version_on_device, WHOLE)
        is_bad = ~(loss.total.isfinite() & grad_norm.isfinite())
        if math.isfinite(self._max_grad_norm):
            scale = (self._max_grad_norm / (grad_norm + _CLIP_EPSILON)).clamp(max=1.0)
            torch._foreach_mul_(_gradients_of(self.model), torch.where(grad_norm > self._max_grad_norm, scale, 1.0))
        step_unless(is_bad, self.optimizer, self._learning_rate)
        self._statistics.take(rollout, _fresh(rollout), loss.value_targets)
        for tensor, before in zip(self._changed_by_statistics, kept, strict=True):
            tensor.detach().copy_(torch.where(is_bad, before, tensor.detach()))
        return numbers

    def _differentiate(
        self, loss: LossOutput, rollout: Rollout, version: int | Tensor, share: Share
    ) -> tuple[Tensor, Tensor]:
        """Leaves the gradients of `loss` in the weights; returns their norm and all numbers of the update."""
        self._part_names = tuple(loss.parts)
        fresh, part = _fresh(rollout), share.valid if self._loss_config.loss_reduction == "mean" else 1.0
        self._gradients.backward(part * loss.total)
        grad_norm = nn.utils.get_total_norm(_gradients_of(self.model))
        lag = policy_lag(rollout.policy_version[:, fresh], rollout.valid[:, fresh], version)
        weights = {"loss": part, "transitions": share.valid, "sum": 1.0}
        scalars = [(loss.total, part), (rollout.valid[:, fresh].sum(), 1.0), (lag, share.fresh)]
        scalars += [(each.value, weights[each.weighted_by]) for each in loss.parts.values()]
        total, *others = _of_global_batch(scalars, share)
        of_own = self._statistics.extremes(rollout, fresh, loss.value_targets)
        return grad_norm, torch.stack([total, grad_norm, *others, *of_own])

    def _forward_eager(self, rollout: Rollout, entropy_cost: Tensor) -> LossOutput:
        low_precision = self._low_precision_dtype != torch.float32
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=low_precision):
            output, _ = self.model(rollout.model_inputs, rollout.core_state)
        return self._loss(output, rollout, self._loss_config, entropy_cost)

    def _value_targets(self, rollout: Rollout) -> Tensor | None:
        return self._forward_eager(rollout, self._entropy_cost).value_targets

    def _with_value_scale(self, rollout: Rollout) -> Rollout:
        """Adds sigma of each unroll's task, if values are normalized."""
        if self.model.popart is None:
            return rollout
        scale = self.model.popart.scale
        return replace(
            rollout, value_scale=scale.expand(1, rollout.batch_size) if rollout.task is None else scale[rollout.task]
        )


def _fresh(rollout: Rollout) -> slice:
    """Returns the unrolls that were not replayed."""
    return slice(rollout.batch_size - rollout.num_replayed)


def _gradients_of(model: Model) -> list[Tensor]:
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


def _is_finite(numbers: Sequence[float]) -> bool:
    """Returns True if loss and gradient norm are finite, by the numbers of an update."""
    return math.isfinite(numbers[_TOTAL]) and math.isfinite(numbers[_NORM])


def _of_global_batch(scalars: Sequence[tuple[Tensor, float]], share: Share) -> Sequence[Tensor]:
    """Reduces scalars of this rank's batch, each with its weight, to those of the global batch."""
    stacked = torch.stack([scalar.float() for scalar, _ in scalars])
    if share is not WHOLE:
        stacked = sum_over_ranks(stacked * stacked.new_tensor([weight for _, weight in scalars]))
    return stacked.unbind()
