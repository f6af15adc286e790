"""Checkpoints of a training, on the first rank."""

import contextlib
import logging
import threading
from collections.abc import Mapping
from typing import Any

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.volume import is_full
from kubebeast_learner.actors.base import Actors
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.skipped import DivergedError
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.machine.cuda_graph import eager
from kubebeast_learner.profiling.timer import Timer
from kubebeast_learner.run.callbacks import CallbackError, Callbacks
from kubebeast_learner.run.checkpoint import CheckpointStore, Saved, rng_state
from kubebeast_learner.run.state import Checkpoint
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.training.checkpoints.background import BackgroundSave, Outcome
from kubebeast_learner.training.checkpoints.state_copy import StateCopy
from kubebeast_learner.training.monitor import Monitor
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.files.room import RoomWait
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog

logger = logging.getLogger(__name__)

RETRY_S = 60.0
"""Longest time between a failed checkpoint and the next attempt."""
BUSY_S = 0.5
"""Time between two attempts to begin one."""


class Saving:
    """The checkpoints of one training. Does nothing if it is not enabled."""

    def __init__(
        self,
        config: TrainingConfig,
        store: CheckpointStore,
        run_log: RunLog | RankLog,
        *,
        actors: Actors,
        stats: RunStats,
        monitor: Monitor,
        callbacks: Callbacks,
        is_enabled: bool,
    ) -> None:
        self._config, self._store, self._run_log = config, store, run_log
        self._actors, self._stats, self._monitor = actors, stats, monitor
        self._callbacks, self._is_enabled = callbacks, is_enabled
        self._background, self._copy = BackgroundSave(store), StateCopy()
        self._timer = Timer(config.run.checkpoint_interval_minutes * 60)
        self._is_requested = False
        self._saved_step, self._failed_step = 0, -1
        self._task_configs: Mapping[str, EnvConfig] = {}

    def resume(self, checkpoint: Checkpoint) -> None:
        """Goes on after a checkpoint."""
        self._saved_step, self._task_configs = checkpoint.step, checkpoint.task_configs

    @property
    def has_checkpoint(self) -> bool:
        """True if the run has a checkpoint, readable or not."""
        return bool(self._store.checkpoints())

    def room(self) -> RoomWait | None:
        """Returns the check for room for the next checkpoint; None if there will be none."""
        return RoomWait(self._run_log.folder, self._store.newest_size()) if self._is_enabled else None

    def request(self) -> None:
        """Makes a checkpoint due now, or as soon as there is new progress."""
        self._is_requested = self._is_enabled
        self._timer.hasten(0.0)

    def begin_if_due(self, learner: Learner, spec: EnvSpec) -> bool:
        """Calls `begin` at the interval of checkpoints, and soon again if it was too early; returns True if it did."""
        if not self._timer.is_due():
            return False
        if (self._is_requested and not self._has_progress) or not self.begin(learner, spec):
            self._timer.hasten(BUSY_S)
            return False
        self._is_requested = False
        return True

    def begin(self, learner: Learner, spec: EnvSpec) -> bool:
        """Starts to save new progress, if there is any, and returns after a copy of the state.

        Returns False if it is too early: the memory for the copy is still being mapped, or the last checkpoint written.
        """
        if not self._has_progress:
            return True
        state = self._state(learner, spec)
        if self._background.is_busy or not self._copy.is_ready(state):
            return False
        with eager(learner.device):
            self._background.start(self._copy.take(state))
        return True

    def settle(self, *, wait: bool = False) -> Exception | None:
        """Notes the end of a save that was begun; returns the error if it failed, which is logged and counted.

        wait: blocks until the save ends. Raises DivergedError if the state was not finite: it is never saved.
        """
        with self._monitor.saving() if wait else contextlib.nullcontext():
            outcome = self._background.take(wait=wait)
        return None if outcome is None else self._note(outcome)

    def save(self, learner: Learner, spec: EnvSpec, *, after_error: bool = False) -> None:
        """Saves new progress before it returns. Raises OSError, DivergedError as `settle` does, or CurriculumError
        unless it is after an error.
        """
        self.settle(wait=True)
        if not self._has_progress:
            return
        with eager(learner.device):
            self._background.start(self._state(learner, spec, after_error=after_error))
            if error := self.settle(wait=True):
                raise error

    def save_after_error(self, learner: Learner, spec: EnvSpec, error: Exception) -> None:
        """Saves new progress after the training has failed, if possible; never raises an error of its own.

        If the training has diverged and there are checkpoints, none is added. Nor is there another attempt if `error`
        is that of the last checkpoint.
        """
        try:
            self.settle(wait=True)
            if self._stats.step == self._failed_step:
                return
            if isinstance(error, DivergedError) and self.has_checkpoint:
                logger.error("no checkpoint of a training that has diverged: those from before stay")
                return
            self.save(learner, spec, after_error=True)
        except (CallbackError, DivergedError, LeaseLostError) as another:
            logger.error("%s", another)
        except OSError:
            return  # it is logged
        except Exception:  # `error` is the reason of the end
            logger.exception("no checkpoint after the error")

    def save_last(self, learner: Learner, spec: EnvSpec, stop: threading.Event, *, is_complete: bool) -> None:
        """Saves the final checkpoint. If the run is complete, it waits for room on a full volume until `stop`.

        Raises OSError if it cannot be saved, DivergedError and CurriculumError.
        """
        try:
            self.save(learner, spec)
        except OSError as error:
            room = self.room()
            if not is_full(error) or not is_complete or room is None or room.look():
                raise
            if not room.wait(stop, self._monitor.note_turn):
                raise
            self.save(learner, spec)

    @property
    def _has_progress(self) -> bool:
        return self._is_enabled and self._stats.step != self._saved_step

    def _note(self, outcome: Outcome) -> Exception | None:
        step, result = outcome.step, outcome.result
        if isinstance(result, Saved):
            self._saved_step = step
            self._monitor.checkpoint_seconds.observe(outcome.seconds)
            self._stats.note_checkpoint(result.num_bytes)
            logger.info("saved %s", result.place)
            self._run_log.note_checkpoint(step)
            self._callbacks.on_checkpoint(step, result.place)
            return None
        self._stats.note_failed_checkpoint()
        self._failed_step = step
        if isinstance(result, str):
            raise DivergedError(f"checkpoint at step {step} not saved, those from before stay: {result}")
        if not isinstance(result, OSError):
            raise result
        logger.error("checkpoint at step %d not saved: %s", step, result)
        self._timer.hasten(RETRY_S)
        return result

    def _state(self, learner: Learner, spec: EnvSpec, *, after_error: bool = False) -> dict[str, Any]:
        return Checkpoint(
            step=self._stats.step,
            env_spec=spec,
            config=as_settings(self._config),
            learner=learner.state_dict(),
            task_configs={**self._task_configs, **self._actors.task_configs()},
            env_statistics=list(self._actors.env_statistics()),
            rng=rng_state(),
            stats=self._stats.state_dict(after_error=after_error),
            score=self._stats.training_score(),
        ).to_plain()
