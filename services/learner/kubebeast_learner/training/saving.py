"""Checkpoints of a training, on the first rank."""

import logging
import threading
from collections.abc import Mapping

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.volume import is_full
from kubebeast_learner.actors.base import Actors
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.skipped import DivergedError
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.machine.cuda_graph import eager
from kubebeast_learner.models.finite import not_finite_in
from kubebeast_learner.run.callbacks import Callbacks
from kubebeast_learner.run.checkpoint import CheckpointStore, rng_state
from kubebeast_learner.run.state import Checkpoint
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.training.monitor import Monitor
from kubebeast_runs.files.room import RoomWait
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog

logger = logging.getLogger(__name__)


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
        self._saved_step = 0
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

    def save(self, learner: Learner, spec: EnvSpec, *, final: bool = False, failing: bool = False) -> None:
        """Saves new progress.

        Failed writes are logged and counted; with `final` they also raise OSError. State that is not finite is never
        saved: it raises DivergedError or, with `failing`, is logged.
        """
        if not self._is_enabled or self._stats.step == self._saved_step:
            return
        checkpoint = self._checkpoint(learner, spec)
        if found := not_finite_in(checkpoint.learner):
            self._stats.note_failed_checkpoint()
            reason = f"checkpoint at step {checkpoint.step} not saved, those from before stay: {found}"
            if not failing:
                raise DivergedError(reason)
            logger.error("%s", reason)
            return
        try:
            with self._monitor.saving(), eager(learner.device):
                written = self._store.save(checkpoint.to_plain())
        except OSError as error:
            self._stats.note_failed_checkpoint()
            logger.error("checkpoint at step %d not saved: %s", checkpoint.step, error)
            if final:
                raise
        else:
            self._saved_step = checkpoint.step
            self._stats.note_checkpoint(written.num_bytes)
            logger.info("saved %s", written.place)
            self._callbacks.on_checkpoint(checkpoint.step, written.place)

    def save_last(self, learner: Learner, spec: EnvSpec, stop: threading.Event, *, is_complete: bool) -> None:
        """Saves the final checkpoint. If the run is complete, it waits for room on a full volume until `stop`.

        Raises OSError if it cannot be saved.
        """
        try:
            self.save(learner, spec, final=True)
        except OSError as error:
            room = self.room()
            if not is_full(error) or not is_complete or room is None or room.look():
                raise
            if not room.wait(stop, self._monitor.note_turn):
                raise
            self.save(learner, spec, final=True)

    def _checkpoint(self, learner: Learner, spec: EnvSpec) -> Checkpoint:
        return Checkpoint(
            step=self._stats.step,
            env_spec=spec,
            config=as_settings(self._config),
            learner=learner.state_dict(),
            task_configs={**self._task_configs, **self._actors.task_configs()},
            env_statistics=list(self._actors.env_statistics()),
            rng=rng_state(),
            stats=self._stats.state_dict(),
        )
