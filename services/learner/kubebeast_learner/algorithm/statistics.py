"""Updates of a model's running statistics, and one-time log lines on numbers that they or the loss leave out."""

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import Model
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.ranks.group import sum_over_ranks

_log = logging.getLogger(__name__)


class Statistics:
    """The running statistics of observations and value targets, if a model has them. Not thread-safe."""

    def __init__(self, model: Model, loss: LossConfig) -> None:
        self._normaliser, self._popart = model.normaliser, model.popart
        self._loss = loss
        self._is_scaled = self._normaliser is None
        self._has_begun = self._popart is None
        self._added_now = False
        self._began_now: Tensor | None = None
        self._said: set[str] = set()

    @property
    def has_begun(self) -> bool:
        """True if `begin` has nothing more to do."""
        return self._is_scaled and self._has_begun and not self._added_now and self._began_now is None

    @torch.no_grad()
    def begin(self, rollout: Rollout, fresh: slice, value_targets: Callable[[Rollout], Tensor | None]) -> None:
        """Adds the observations of the first batch, and the value targets of a task's first batch with a reward, before
        they are trained on: one step at the scale of before is a hundred steps at the scale of the data, or none.

        Waits for the device until all have begun.
        """
        self._begin_observations(rollout, fresh)
        self._began_now = None
        if self._has_begun or self._popart is None:
            return
        unknown = self._popart.num_updates == 0
        self._has_begun = not bool(unknown.any())
        has_reward = (rollout.rewards[1:, fresh] != 0) & rollout.valid[:, fresh]
        if self._has_begun or not bool(sum_over_ranks(has_reward.sum())):
            return
        targets = value_targets(rollout)
        assert targets is not None, "loss_choice.check_loss"
        self._add_targets(rollout, fresh, targets, of_tasks=unknown)
        self._began_now = unknown & (self._popart.num_updates > 0)

    def _begin_observations(self, rollout: Rollout, fresh: slice) -> None:
        self._added_now = False
        if self._is_scaled or self._normaliser is None:
            return
        self._is_scaled = self._normaliser.has_begun
        if self._is_scaled:
            return
        self._add_observations(rollout, fresh)
        self._added_now = True
        if found := [each for each in self._normaliser.describe_off_scale() if each not in self._said]:
            self._said.update(found)
            _log.info("off scale, therefore normalized: %s", ", ".join(found))

    def extremes(self, rollout: Rollout, fresh: slice, value_targets: Tensor | None) -> list[Tensor]:
        """Returns scalars of this rank's batch, on its device, for `say`: the lowest and the highest reward, and the
        largest absolute number of each normalized leaf and of the value targets, if the model has statistics of them.
        """
        valid = rollout.valid[:, fresh]
        rewards = rollout.rewards[1:, fresh]
        found = [-_largest(-rewards, valid), _largest(rewards, valid)]
        if self._normaliser is not None:
            leaves = self._normaliser.of_numbers(rollout.observation)
            found += [_largest(leaf[:-1, fresh].abs(), valid) for leaf in leaves]
        if self._popart is not None and value_targets is not None:
            found.append(_largest(value_targets[:, fresh].abs(), valid))
        return found

    def say(self, extremes: Sequence[float]) -> None:
        """Logs, once each, the rewards, leaves and value targets with numbers left out, by the extremes of a batch."""
        lowest, highest, *largest = extremes
        self._say_clipped(lowest, highest)
        names = [f"the observation {name}" for name in self._normaliser.names] if self._normaliser is not None else []
        for name, number in zip([*names, "a value target"], largest, strict=False):
            if number > LARGEST and name not in self._said:
                self._said.add(name)
                text = "%s holds %g: numbers beyond %g are no part of the running statistics"
                _log.warning(text, name, number, LARGEST)

    def take(self, rollout: Rollout, fresh: slice, value_targets: Tensor | None) -> None:
        """Adds the observations that were acted on, and the value targets, of a batch that was trained on."""
        if not self._added_now:
            self._add_observations(rollout, fresh)
        if value_targets is not None:
            self._add_targets(rollout, fresh, value_targets, None if self._began_now is None else ~self._began_now)

    def _add_observations(self, rollout: Rollout, fresh: slice) -> None:
        if self._normaliser is not None:
            self._normaliser.add([leaf[:-1, fresh] for leaf in rollout.observation], rollout.valid[:, fresh])

    def _add_targets(
        self, rollout: Rollout, fresh: slice, value_targets: Tensor, of_tasks: Tensor | None = None
    ) -> None:
        """Adds the value targets of some tasks. of_tasks: bool [K]; None is all."""
        if self._popart is None:
            return
        task = None if rollout.task is None else rollout.task[0, fresh]
        counted = rollout.valid[:, fresh]
        if of_tasks is not None:
            counted = counted & (of_tasks[0] if task is None else of_tasks[task])
        self._popart.add(value_targets[:, fresh], counted, task)

    def _say_clipped(self, lowest: float, highest: float) -> None:
        reward = lowest if -lowest > highest else highest
        scaled = self._loss.reward_scale * reward
        if self._loss.reward_clipping != "abs_one" or abs(scaled) <= 1.0 or "reward" in self._said:
            return
        self._said.add("reward")
        scale = f" times reward_scale = {self._loss.reward_scale:g}" if self._loss.reward_scale != 1.0 else ""
        text = "a reward of %g%s counts as %g in the loss: reward_clipping = 'abs_one', 'none' keeps its size"
        _log.info(text, reward, scale, 1.0 if scaled > 0 else -1.0)


def _largest(numbers: Tensor, counted: Tensor) -> Tensor:
    """Returns the largest number of [T, B, *shape] with a true `counted`, bool [T, B], at least 0: float32 scalar."""
    where = counted.view(*counted.shape, *[1] * (numbers.ndim - 2))
    chosen = torch.where(where, numbers.float(), 0.0)
    return chosen.amax().clamp(min=0.0) if chosen.numel() else chosen.new_zeros(())
