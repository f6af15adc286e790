"""The learner: one update of the model for one batch of unrolls."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kubebeast_learner.algorithm.gradient_steps import GradientSteps, StepNumbers
from kubebeast_learner.algorithm.optimizers import load_state, make_optimizer
from kubebeast_learner.algorithm.options.passes import Passes, share_of, splits_by_unroll
from kubebeast_learner.algorithm.precision import (
    CompileChoice,
    PrecisionChoice,
    compute_in_float32,
    use_channels_last,
)
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.algorithm.schedules import entropy_cost_at, learning_rate_at
from kubebeast_learner.algorithm.skipped import MAX_SKIPPED_UPDATES as MAX_SKIPPED_UPDATES
from kubebeast_learner.algorithm.skipped import DivergedError as DivergedError
from kubebeast_learner.algorithm.skipped import SkippedUpdates
from kubebeast_learner.algorithm.statistics import Statistics
from kubebeast_learner.config import LossConfig, OptimizerConfig, PassesConfig
from kubebeast_learner.machine.cuda_graph import Recorder
from kubebeast_learner.models import Model
from kubebeast_learner.models.finite import MADE_NOT_FINITE
from kubebeast_learner.ranks.turns import WHOLE, Share

_ONE_PASS = PassesConfig()


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

    def numbers(self) -> dict[str, float]:
        """Returns the numbers of the update by their names in logs.csv, and `version`."""
        return {
            "total_loss": self.total_loss,
            **self.parts,
            "grad_norm": self.grad_norm,
            "policy_lag": self.policy_lag,
            "learning_rate": self.learning_rate,
            "entropy_cost": self.entropy_cost,
            "version": self.version,
        }


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
        schedule_steps: int,
        passes: PassesConfig = _ONE_PASS,
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
            schedule_steps: env-steps over which learning rate and entropy cost follow their schedules.
            passes: gradient steps on each batch.
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
        self._skipped = SkippedUpdates(model, self.optimizer)
        self._statistics = Statistics(model, loss)
        self._schedule_steps = schedule_steps
        self._optimizer_config = optimizer
        self._loss_config = loss
        self._passes = Passes(passes, by_unroll=splits_by_unroll(model, loss.loss))
        self._steps = GradientSteps(
            model,
            self.optimizer,
            loss,
            self._statistics,
            self._skipped,
            max_grad_norm=optimizer.grad_norm_clipping or math.inf,
            device=self.device,
            precision=precision,
            compile=compile,
            recorder=recorder,
        )
        self.phases = self._steps.phases

    def update(
        self, rollout: Rollout, step: int, share: Share = WHOLE, meanwhile: Callable[[], None] | None = None
    ) -> UpdateStats:
        """Makes the gradient steps on a batch that lies on the learner's device; waits for the device once for each.

        A loss or gradient that is not finite changes nothing, ends the steps on the batch, and is counted. All ranks
        call this together.

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
        learning_rate = learning_rate_at(step, self._schedule_steps, self._optimizer_config)
        entropy_cost = entropy_cost_at(step, self._schedule_steps, self._loss_config)
        self._steps.set_schedules(learning_rate, entropy_cost, self.version)
        self._steps.begin(rollout)
        if self._passes.are_plain:
            made = [self._steps.step(rollout, share, meanwhile)]
            of_batch = made[0].of_batch
        else:
            made, of_batch = self._step_over_minibatches(rollout, share)
        num_fresh, lag, *extremes = of_batch
        skipped = not made[0].is_finite
        if not made[-1].is_finite:
            self._skipped.add(rollout, made[-1].total_loss, made[-1].grad_norm)
        else:
            self._skipped.end_row()
        if not skipped:
            self.version += 1
            self._statistics.say(extremes)
        return UpdateStats(
            total_loss=_mean([each.total_loss for each in made]),
            parts={name: _mean([each.parts[name] for each in made]) for name in made[0].parts},
            grad_norm=_mean([each.grad_norm for each in made]),
            policy_lag=lag,
            num_transitions=0 if skipped else int(num_fresh),
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

    def _step_over_minibatches(self, rollout: Rollout, share: Share) -> tuple[list[StepNumbers], Sequence[float]]:
        """Makes the steps of all passes over a batch; returns their numbers and those of the batch."""
        made: list[StepNumbers] = []
        batch = rollout
        for estimated, part in self._passes.over(rollout, self._steps.estimate, seed=self.version):
            batch = estimated
            made.append(self._steps.step(part, share if share is WHOLE else share_of(part)))
            if not made[-1].is_finite:
                break
        return made, self._steps.end(batch, share, has_changed=made[0].is_finite)


def _mean(numbers: Sequence[float]) -> float:
    """Returns the mean of the finite numbers; of none, the first number."""
    finite = [number for number in numbers if math.isfinite(number)]
    return sum(finite) / len(finite) if finite else numbers[0]
