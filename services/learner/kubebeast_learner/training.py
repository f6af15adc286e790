"""The training loop of one run, and what is logged and saved on the way.

env-servers -> ActorPool -> InferenceWorker -> ActorPool -> rollouts -> Learner -> weights -> InferenceWorker
"""

import logging
import shlex
import threading
import time
from pathlib import Path
from typing import Any

from kubebeast_learner import checkpoint
from kubebeast_learner.assembly import Rooms, assemble
from kubebeast_learner.checkpoint import CheckpointStore
from kubebeast_learner.config import LearnerConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.local_fleet import LocalFleet
from kubebeast_learner.progress import Progress
from kubebeast_learner.rollout import rollout_from_native
from kubebeast_learner.run_log import RunLog
from kubebeast_learner.run_stats import RunStats, Snapshot
from kubebeast_native import ActorPool, RolloutBatch

logger = logging.getLogger(__name__)

POLL_MS = 200
"""Longest wait for rollouts, and so for a stop to be noticed."""
CHECK_INTERVAL_S = 0.5
HINT_INTERVAL_S = 30.0
SUMMARY_EPISODES = 20
# Everything else in a snapshot is a column of logs.csv, TorchBeast's names among them.
NOT_LOGGED = {"total_steps", "elapsed_s", "eta_s", "learner_queue_capacity", "num_transitions", "version", "skipped"}


class Training:
    """One run of the learner, from the first env-server to the last checkpoint. For one thread."""

    def __init__(
        self,
        config: LearnerConfig,
        *,
        pool: ActorPool,
        fleet: LocalFleet | None,
        store: CheckpointStore,
        run_log: RunLog,
        progress: Progress,
    ) -> None:
        """pool: started, not open. fleet: the env-servers of this machine, if there are any."""
        self._config = config
        self._pool = pool
        self._fleet = fleet
        self._store = store
        self._run_log = run_log
        self._progress = progress
        rollout = config.rollout
        self._stats = RunStats(
            total_steps=config.run.total_steps,
            learner_queue_capacity=rollout.max_learner_queue_size or 2 * rollout.batch_size,
        )
        self._first_step = self._saved_step = 0
        self._hint = _Timer(HINT_INTERVAL_S)

    def run(self, stop: threading.Event) -> None:
        """Trains until total_steps or `stop`, then saves a checkpoint; on an error it saves one and raises.

        Raises ConfigError for settings that do not fit the environment or the run's checkpoint, CheckpointError,
        FleetError, ClosedError for a failed native thread, InferenceError, DivergedError.
        """
        saved = self._store.load_newest()
        if saved is not None:
            path, state = saved
            self._stats.load_state_dict(state["stats"], state["step"])
            self._first_step = self._saved_step = state["step"]
            logger.info("resuming %s at step %d of %d", path, state["step"], self._config.run.total_steps)
            if state["step"] >= self._config.run.total_steps:
                return
        spec = self._wait_for_env_spec(stop)
        if spec is not None:
            self._train(spec, saved, stop)

    def summary(self) -> str:
        """What the run achieved and where it is, for people, in a few lines."""
        run, snapshot = self._config.run, self._snapshot()
        score = self._stats.mean_of_last(SUMMARY_EPISODES)
        trained = snapshot.step - self._first_step
        lines = [
            f"{snapshot.step:,} steps, {trained:,} of them now at {trained / snapshot.elapsed_s:,.0f} steps/s; "
            f"mean return of the last {SUMMARY_EPISODES} games: {'none finished' if score is None else f'{score:.2f}'}",
            f"logs and checkpoints: {self._run_log.folder}",
        ]
        if self._store.paths():
            where = f"--savedir {shlex.quote(str(run.savedir))} --xpid {shlex.quote(run.xpid)}"
            lines.append(f"play it: kubebeast eval {where}")
        return "\n".join(lines)

    def _wait_for_env_spec(self, stop: threading.Event) -> EnvSpec | None:
        """What the first env-server brings; None when stopped before."""
        while not stop.is_set():
            spec = self._pool.wait_env_spec(POLL_MS)
            if spec is not None:
                return EnvSpec.of(spec.env_id, spec.observation, spec.action)
            self._check_fleet()
        return None

    def _train(self, spec: EnvSpec, saved: tuple[Path, dict[str, Any]] | None, stop: threading.Event) -> None:
        rooms = assemble(self._config, spec, self._pool, saved)
        logger.info("training on %s: %s", rooms.learner.device, spec)
        self._pool.open(num_logits=rooms.model.num_actions, core_state_size=rooms.model.core_state_size)
        for worker in rooms.workers:
            worker.start()
        try:
            self._loop(rooms, spec, stop)
        except Exception:
            self._save(rooms, spec)
            raise
        self._save(rooms, spec, final=True)
        for worker in rooms.workers:
            worker.stop()

    def _loop(self, rooms: Rooms, spec: EnvSpec, stop: threading.Event) -> None:
        run = self._config.run
        check, log = _Timer(CHECK_INTERVAL_S), _Timer(run.log_interval_s)
        show, save = _Timer(self._progress.interval_s), _Timer(run.checkpoint_interval_minutes * 60)
        while self._stats.step < run.total_steps and not stop.is_set():
            batch = self._pool.next_rollouts(POLL_MS)
            if batch is not None:
                self._train_on(batch, rooms)
            for worker in rooms.workers:
                worker.raise_error()
            if check.is_due():
                self._check_fleet()
            if log.is_due():
                self._log()
            if show.is_due():
                self._progress.show(self._snapshot())
            if save.is_due():
                self._save(rooms, spec)
        self._log()
        self._progress.show(self._snapshot())

    def _train_on(self, batch: RolloutBatch, rooms: Rooms) -> None:
        learner = rooms.learner
        # Linear to 0, as in TorchBeast.
        remaining = max(0.0, 1.0 - self._stats.step / self._config.run.total_steps)
        rollout = rollout_from_native(batch, learner.model, learner.device)
        update = learner.update(rollout, self._config.optimizer.learning_rate * remaining)
        if not update.skipped:
            rooms.weights.publish(update.version)
        self._stats.add_update(update)

    def _check_fleet(self) -> None:
        """Restarts env-servers that died, and says now and then when none is connected."""
        if self._fleet is not None:
            self._fleet.check()
        if self._pool.stats()["streams"] > 0:
            self._hint = _Timer(HINT_INTERVAL_S)
        elif self._hint.is_due():
            logger.info("waiting for env-servers on %s", self._pool.address)

    def _snapshot(self) -> Snapshot:
        self._stats.add_episodes(self._pool.take_episodes())
        return self._stats.snapshot(self._pool.stats(), self._fleet.num_restarts if self._fleet else 0)

    def _log(self) -> None:
        values = self._snapshot().flat()
        self._run_log.log({name: value for name, value in values.items() if name not in NOT_LOGGED})

    def _save(self, rooms: Rooms, spec: EnvSpec, *, final: bool = False) -> None:
        """Saves when there is something new. A full disk is logged and counted; OSError for the final checkpoint."""
        if self._config.run.disable_checkpoint or self._stats.step == self._saved_step:
            return
        state = {
            "format": checkpoint.FORMAT,
            "step": self._stats.step,
            "env_spec": spec.to_plain(),
            "config": as_settings(self._config),
            "learner": rooms.learner.state_dict(),
            "rng": checkpoint.rng_state(),
            "stats": self._stats.state_dict(),
        }
        try:
            path = self._store.save(state)
        except OSError as error:
            self._stats.note_checkpoint(failed=True)
            logger.error("checkpoint at step %d not saved: %s", self._stats.step, error)
            if final:
                raise
        else:
            self._saved_step = self._stats.step
            self._stats.note_checkpoint()
            logger.info("saved %s", path)


class _Timer:
    """Due every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_at = time.monotonic() + interval_s

    def is_due(self) -> bool:
        """Whether the interval is over; starts the next one if it is."""
        now = time.monotonic()
        if now < self._due_at:
            return False
        self._due_at = now + self._interval_s
        return True
