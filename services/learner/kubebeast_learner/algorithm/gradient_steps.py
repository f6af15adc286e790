"""Gradient steps of a model: eager, compiled, or as CUDA graphs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from kubebeast_learner.algorithm.execution.compiled import CompiledOrEager
from kubebeast_learner.algorithm.execution.update_graphs import UpdateGraphs
from kubebeast_learner.algorithm.loss_choice import make_loss
from kubebeast_learner.algorithm.losses import LossOutput, estimate, policy_lag
from kubebeast_learner.algorithm.optimizers import has_device_skip, step_unless
from kubebeast_learner.algorithm.precision import (
    CompileChoice,
    PrecisionChoice,
    choose_fastest_convolutions,
    low_precision_dtype,
    should_compile,
)
from kubebeast_learner.algorithm.rollout import Rollout, to_host
from kubebeast_learner.algorithm.skipped import SkippedUpdates
from kubebeast_learner.algorithm.statistics import Statistics
from kubebeast_learner.config import LossConfig
from kubebeast_learner.machine.cuda_graph import Recorder, eager
from kubebeast_learner.models import Model, ModelOutput
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.ranks.gradients import SummedGradients
from kubebeast_learner.ranks.group import ending_waits, sum_over_ranks
from kubebeast_learner.ranks.turns import WHOLE, Share

_Forward = Callable[[Rollout, Tensor], LossOutput]
_ResultT = TypeVar("_ResultT")

_TOTAL, _NORM, _FIRST_PART = range(3)
"""Places of a step's numbers. The parts of the loss follow, then the numbers of the batch."""
_CLIP_EPSILON = 1e-6
"""Added to the norm by torch.nn.utils.clip_grads_with_norm_."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepNumbers:
    """Numbers of one gradient step."""

    total_loss: float
    grad_norm: float
    """Global norm of the gradient before clipping."""
    parts: Mapping[str, float]
    """Parts of the loss by name."""
    of_batch: Sequence[float]
    """Results of `GradientSteps.count`; () for a minibatch."""

    @property
    def is_finite(self) -> bool:
        """True unless the step was skipped, as its loss or gradient was not finite."""
        return math.isfinite(self.total_loss) and math.isfinite(self.grad_norm)


class GradientSteps:
    """The gradient steps of one model on its device. Not thread-safe.

    A step with a loss or gradient that is not finite changes nothing. If a group of ranks is open, each step is that of
    the global batch.
    """

    def __init__(
        self,
        model: Model,
        optimizer: torch.optim.Optimizer,
        loss: LossConfig,
        statistics: Statistics,
        skipped: SkippedUpdates,
        *,
        max_grad_norm: float,
        device: torch.device,
        precision: PrecisionChoice,
        compile: CompileChoice,
        recorder: Recorder | None,
    ) -> None:
        """Arguments as those of the Learner; `max_grad_norm` may be infinite."""
        self.phases = PhaseTimes()
        self._model, self._optimizer = model, optimizer
        self._statistics, self._skipped = statistics, skipped
        self._device = device
        self._max_grad_norm = max_grad_norm
        self._loss_config = loss
        self._loss = make_loss(loss)
        self._part_names: tuple[str, ...] = ()
        """Names of the loss's parts, in the order of their numbers; known after the first forward pass."""
        # Tensors filled in place: a changing number would be recompiled with every update.
        self._entropy_cost = torch.zeros((), device=device)
        self._learning_rate = torch.zeros((), device=device)
        self._version = torch.zeros((), dtype=torch.int64, device=device)
        self._low_precision_dtype = low_precision_dtype(precision, model, device)
        self._forward: _Forward = self._forward_eager
        uses_graphs = recorder is not None and has_device_skip(optimizer)
        if should_compile(compile, model, device, uses_graphs=uses_graphs):
            self._forward = CompiledOrEager(self._forward_eager, model)
        self._gradients = SummedGradients(model, self._forward)
        self._graphs = None
        if recorder is not None and uses_graphs:
            choose_fastest_convolutions()
            self._graphs = UpdateGraphs(self._step_on_device, recorder)
        self._changed_by_statistics = [*model.buffers(), *(model.popart.parameters() if model.popart else ())]

    def set_schedules(self, learning_rate: float, entropy_cost: float, version: int) -> None:
        """Sets the learning rate, the weight of the entropy bonus and the version of the weights for the next steps."""
        self._entropy_cost.fill_(entropy_cost)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        if self._graphs is not None:
            self._learning_rate.fill_(learning_rate)
        self._version.fill_(version)

    def step(self, rollout: Rollout, share: Share, meanwhile: Callable[[], None] | None = None) -> StepNumbers:
        """Makes one gradient step on a batch, with its statistics, or on a minibatch; waits for the device once.

        Args:
            rollout: batch with whole stacks on the device.
            share: share of the batch in the global batch.
            meanwhile: called while the device computes, if the step is a CUDA graph.
        """
        numbers = self._step_by_graph(rollout, meanwhile) if share is WHOLE else None
        if numbers is None:
            numbers = self._step_eagerly(rollout, share)
        end_of_parts = _FIRST_PART + len(self._part_names)
        return StepNumbers(
            total_loss=numbers[_TOTAL],
            grad_norm=numbers[_NORM],
            parts=dict(zip(self._part_names, numbers[_FIRST_PART:end_of_parts], strict=True)),
            of_batch=numbers[end_of_parts:],
        )

    def begin(self, rollout: Rollout) -> None:
        """Begins the statistics of value targets, before the first step on a batch with a reward."""
        if not self._statistics.has_begun:
            with self.phases.measure("forward"), ending_waits(self._device), eager(self._device):
                self._statistics.begin(rollout, rollout.fresh, self._value_targets)

    def estimate(self, rollout: Rollout) -> Rollout:
        """Returns a batch with the value_targets and advantages of the present weights, if the loss is impala."""
        if ":" in self._loss_config.loss:
            return rollout
        with self.phases.measure("forward"), eager(self._device):
            return self._without_traces(lambda: estimate(self._output(rollout), rollout, self._loss_config))

    def end(self, rollout: Rollout, share: Share, *, has_changed: bool) -> Sequence[float]:
        """Returns the numbers of a batch after the last step on its minibatches, and adds it, with the value targets of
        its last estimates, to the statistics if they have changed the weights.
        """
        with ending_waits(self._device), eager(self._device):
            value_targets = rollout.value_targets
            if value_targets is None and self._model.popart is not None:
                value_targets = self._value_targets(rollout)
            numbers: Sequence[float] = to_host(torch.stack(self._count(rollout, share, value_targets)))[0].tolist()
            if has_changed:
                self._statistics.take(rollout, rollout.fresh, value_targets)
        return numbers

    def _step_eagerly(self, rollout: Rollout, share: Share) -> list[float]:
        """Makes a step whose optimizer waits for the numbers."""
        self._optimizer.zero_grad()
        self._skipped.keep_buffers()
        with ending_waits(self._device), eager(self._device):
            with self.phases.measure("forward"):
                rollout = self._with_value_scale(rollout)
                loss = self._gradients(rollout, self._entropy_cost)
            with self.phases.measure("backward"):
                grad_norm, on_device = self._differentiate(loss, rollout, share)
                numbers: list[float] = to_host(on_device)[0].tolist()
        if not (math.isfinite(numbers[_TOTAL]) and math.isfinite(numbers[_NORM])):
            self._skipped.restore_buffers()
            return numbers
        with self.phases.measure("optimizer"):
            if numbers[_NORM] > self._max_grad_norm:
                nn.utils.clip_grads_with_norm_(self._model.parameters(), self._max_grad_norm, grad_norm)
            self._optimizer.step()
            if not rollout.is_minibatch:
                self._statistics.take(rollout, rollout.fresh, loss.value_targets)
        return numbers

    def _step_by_graph(self, rollout: Rollout, meanwhile: Callable[[], None] | None) -> list[float] | None:
        """Makes a step by a graph, if there is one for the batch."""
        if self._graphs is None or not self._statistics.has_begun:
            return None
        with self.phases.measure("forward"):
            wait = self._graphs.start(rollout)
        if wait is None:
            return None
        if meanwhile is not None:
            meanwhile()
        with self.phases.measure("backward"):
            return wait()

    def _step_on_device(self, rollout: Rollout) -> Tensor:
        """Makes a step without waiting for the device; changes nothing if the loss or the gradient is not finite."""
        self._optimizer.zero_grad()
        kept = [tensor.detach().clone() for tensor in self._changed_by_statistics]
        rollout = self._with_value_scale(rollout)
        loss = self._gradients(rollout, self._entropy_cost)
        grad_norm, numbers = self._differentiate(loss, rollout, WHOLE)
        is_bad = ~(loss.total.isfinite() & grad_norm.isfinite())
        if math.isfinite(self._max_grad_norm):
            scale = (self._max_grad_norm / (grad_norm + _CLIP_EPSILON)).clamp(max=1.0)
            torch._foreach_mul_(_gradients_of(self._model), torch.where(grad_norm > self._max_grad_norm, scale, 1.0))
        step_unless(is_bad, self._optimizer, self._learning_rate)
        if not rollout.is_minibatch:
            self._statistics.take(rollout, rollout.fresh, loss.value_targets)
        for tensor, before in zip(self._changed_by_statistics, kept, strict=True):
            tensor.detach().copy_(torch.where(is_bad, before, tensor.detach()))
        return numbers

    def _differentiate(self, loss: LossOutput, rollout: Rollout, share: Share) -> tuple[Tensor, Tensor]:
        """Leaves the gradients of `loss` in the weights; returns their norm and all numbers of the step."""
        self._part_names = tuple(loss.parts)
        part = share.valid if self._loss_config.loss_reduction == "mean" else 1.0
        self._gradients.backward(part * loss.total)
        grad_norm = nn.utils.get_total_norm(_gradients_of(self._model))
        weights = {"loss": part, "transitions": share.valid, "sum": 1.0}
        scalars = [(loss.total, part), *((each.value, weights[each.weighted_by]) for each in loss.parts.values())]
        total, *parts = _of_global_batch(scalars, share)
        of_batch = [] if rollout.is_minibatch else self._count(rollout, share, loss.value_targets)
        return grad_norm, torch.stack([total, grad_norm, *parts, *of_batch])

    def _count(self, rollout: Rollout, share: Share, value_targets: Tensor | None) -> list[Tensor]:
        """Returns numbers of a batch: its fresh transitions, their policy lag, and the extremes of the statistics."""
        fresh = rollout.fresh
        lag = policy_lag(rollout.policy_version[:, fresh], rollout.valid[:, fresh], self._version)
        of_all = _of_global_batch([(rollout.valid[:, fresh].sum(), 1.0), (lag, share.fresh)], share)
        return [*of_all, *self._statistics.extremes(rollout, fresh, value_targets)]

    def _output(self, rollout: Rollout) -> ModelOutput:
        low_precision = self._low_precision_dtype != torch.float32
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=low_precision):
            output: ModelOutput = self._model(rollout.model_inputs, rollout.core_state)[0]
        return output

    def _forward_eager(self, rollout: Rollout, entropy_cost: Tensor) -> LossOutput:
        return self._loss(self._output(rollout), rollout, self._loss_config, entropy_cost)

    def _value_targets(self, rollout: Rollout) -> Tensor | None:
        return self._without_traces(lambda: self._forward_eager(rollout, self._entropy_cost).value_targets)

    @torch.no_grad()
    def _without_traces(self, forward: Callable[[], _ResultT]) -> _ResultT:
        """Returns the result of a forward pass that changes no buffers and makes no gradient."""
        self._skipped.keep_buffers()
        try:
            return forward()
        finally:
            self._skipped.restore_buffers()

    def _with_value_scale(self, rollout: Rollout) -> Rollout:
        """Adds sigma of each unroll's task, if values are normalized."""
        if self._model.popart is None:
            return rollout
        scale = self._model.popart.scale
        return replace(
            rollout, value_scale=scale.expand(1, rollout.batch_size) if rollout.task is None else scale[rollout.task]
        )


def _gradients_of(model: Model) -> list[Tensor]:
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


def _of_global_batch(scalars: Sequence[tuple[Tensor, float]], share: Share) -> Sequence[Tensor]:
    """Reduces scalars of this rank's batch, each with its weight, to those of the global batch."""
    stacked = torch.stack([scalar.float() for scalar, _ in scalars])
    if share is not WHOLE:
        stacked = sum_over_ranks(stacked * stacked.new_tensor([weight for _, weight in scalars]))
    return stacked.unbind()
