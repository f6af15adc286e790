"""The training loop of one run, and what is logged and saved on the way.

actors -> rollouts -> learner -> weights -> actors
"""

import logging
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubebeast_learner.actors.base import Actors
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.replay import ReplayBuffer, make_replay
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.config.sources import as_settings
from kubebeast_learner.profiling.timer import Timer
from kubebeast_learner.profiling.trace import Profiler, span
from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.log import RunLog
from kubebeast_learner.run.stats import RunStats, Snapshot
from kubebeast_learner.training.build import assemble_learner
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import Progress

logger = logging.getLogger(__name__)

POLL_MS = 200
"""Longest wait for rollouts, and so for a stop to be noticed."""
CHECK_INTERVAL_S = 0.5
SUMMARY_EPISODES = 20
# Everything else in a snapshot is a column of logs.csv, TorchBeast's names among them.
NOT_LOGGED = {
    *("total_steps", "eta_s", "waited_s", "learner_queue_capacity", "num_transitions", "version"),
    *("skipped", "checkpoint_time_s", "checkpoint_bytes"),
    *("process_updates", "process_skipped_updates", "process_episodes"),
}


class Training:
    """One run of the learner, from the first env-server to the last checkpoint. For one thread."""

    def __init__(
        self,
        config: TrainingConfig,
        *,
        actors: Actors,
        store: CheckpointStore,
        run_log: RunLog,
        progress: Progress,
        monitor: Monitor,
    ) -> None:
        self._config = config
        self._actors = actors
        self._store = store
        self._run_log = run_log
        self._progress = progress
        self._monitor = monitor
        self._tasks = config.tasks.tasks
        self._stats = RunStats(
            total_steps=config.run.total_steps, learner_queue_capacity=actors.queue_capacity, tasks=self._tasks
        )
        self._replay: ReplayBuffer | None = None
        self._first_step = self._saved_step = 0
        self._saved_configs: Mapping[str, Any] = {}

    def run(self, stop: threading.Event, saved: tuple[Path, dict[str, Any]] | None) -> None:
        """Trains until total_steps or `stop`, then takes no more actors in and saves a checkpoint; on an error it saves
        one and raises.

        saved: the path and the state of the checkpoint to go on from, None starts afresh.
        Raises ConfigError for settings that do not fit the environment or the checkpoint, ActorsError, InferenceError,
        DivergedError.
        """
        run, batch = self._config.run, self._config.steps_per_batch
        if run.total_steps < batch:
            text = (
                "total_steps = %d is less than one batch, unroll_length * batch_size = %d env-steps: one update is all"
            )
            logger.warning(text, run.total_steps, batch)
        if saved is not None:
            path, state = saved
            self._stats.load_state_dict(state["stats"], state["step"], state["env_spec"]["env_id"])
            self._first_step = self._saved_step = state["step"]
            self._saved_configs = state.get("task_configs", {})
            logger.info("resuming %s at step %d of %d", path, state["step"], run.total_steps)
            if state["step"] >= run.total_steps:
                self._actors.drain(finished=True)
                return
        spec = self._wait_for_env_spec(stop)
        if spec is not None:
            self._run_log.note_environment(spec.env_id, spec.to_plain()["env_config"])
            self._train(spec, saved, stop)

    def summary(self) -> str:
        """What the run achieved and where it is, for people, in a few lines."""
        run, snapshot = self._config.run, self._snapshot()
        scores = self._stats.mean_of_last(SUMMARY_EPISODES)
        score = ", ".join(f"{mean:.2f}" + f" in {task}" * (len(scores) > 1) for task, mean in scores.items())
        trained = snapshot.step - self._first_step
        lines = [
            f"{snapshot.step:,} steps, {trained:,} of them now at {trained / snapshot.elapsed_s:,.0f} steps/s; "
            f"mean return of the last {SUMMARY_EPISODES} games: {score or 'none finished'}",
            f"logs and checkpoints: {self._run_log.folder}",
        ]
        if self._store.paths():
            where = f"--savedir {shlex.quote(str(run.savedir))} --xpid {shlex.quote(run.xpid)}"
            lines.append(f"play it: kubebeast eval {where}")
        return "\n".join(lines)

    def _wait_for_env_spec(self, stop: threading.Event) -> EnvSpec | None:
        """What is acted in; None when stopped before that is known."""
        while not stop.is_set():
            self._monitor.note_turn()
            spec = self._actors.wait_env_spec(POLL_MS)
            if spec is not None:
                return spec
            self._actors.check()
        return None

    def _train(self, spec: EnvSpec, saved: tuple[Path, dict[str, Any]] | None, stop: threading.Event) -> None:
        learner = assemble_learner(self._config, spec, saved)
        seed = self._config.run.seed + learner.version  # a resumed run must not draw again what it has drawn before
        self._replay = make_replay(self._config.replay, self._config.rollout.batch_size, seed)
        logger.info("training on %s: %s", learner.device, spec)
        self._monitor.phases = learner.phases
        self._stats.begin()
        self._actors.start(learner.model, learner.device, learner.version)
        try:
            with Profiler(self._config.run.profile, self._run_log.folder, self._actors.profile_window) as profiler:
                self._loop(learner, spec, stop, profiler)
            self._actors.drain(finished=self._stats.step >= self._config.run.total_steps)
        except Exception:
            self._save(learner, spec)
            raise
        self._save(learner, spec, final=True)
        self._actors.stop()

    def _loop(self, learner: Learner, spec: EnvSpec, stop: threading.Event, profiler: Profiler) -> None:
        run = self._config.run
        check, log = Timer(CHECK_INTERVAL_S), Timer(run.log_interval_s)
        show, save = Timer(self._progress.interval_s), Timer(run.checkpoint_interval_minutes * 60)
        while self._stats.step < run.total_steps and not stop.is_set():
            self._monitor.note_turn()
            with span("dequeue"), self._stats.waiting():
                rollout = self._actors.next_rollout(POLL_MS)
            if rollout is not None:
                self._train_on(rollout, learner)
                profiler.step()
            if check.is_due():
                self._actors.check()
                self._snapshot()
            if log.is_due():
                self._log()
            if show.is_due():
                self._progress.show(self._snapshot())
            if save.is_due():
                self._save(learner, spec)
        self._log()
        self._progress.show(self._snapshot())

    def _train_on(self, rollout: Rollout, learner: Learner) -> None:
        if self._replay is not None:
            rollout = self._replay.mix(rollout)
        task_steps = rollout.steps_of_tasks(len(self._tasks))
        with learner.phases.measure("to_device"):
            rollout = rollout.to(learner.device)
        update = learner.update(rollout, self._stats.step)
        if not update.skipped:
            with learner.phases.measure("publish"):
                self._actors.publish(update.version)
        self._stats.add_update(update, task_steps)
        self._monitor.note_update()

    def _snapshot(self) -> Snapshot:
        self._stats.add_episodes(self._actors.take_episodes())
        snapshot = self._stats.snapshot(self._actors.stats())
        self._monitor.snapshot = snapshot
        return snapshot

    def _log(self) -> None:
        values = {name: value for name, value in self._snapshot().flat().items() if name not in NOT_LOGGED}
        self._run_log.log(values | {"episode_returns": self._stats.take_episode_returns()})

    def _save(self, learner: Learner, spec: EnvSpec, *, final: bool = False) -> None:
        """Saves when there is something new. A full disk is logged and counted; OSError for the final checkpoint."""
        if self._config.run.disable_checkpoint or self._stats.step == self._saved_step:
            return
        told = {task: config.to_plain() for task, config in self._actors.task_configs().items()}
        state = {
            "format": checkpoint.FORMAT,
            "step": self._stats.step,
            "env_spec": spec.to_plain(),
            "task_configs": {**self._saved_configs, **told},
            "config": as_settings(self._config),
            "learner": learner.state_dict(),
            "rng": checkpoint.rng_state(),
            "stats": self._stats.state_dict(),
        }
        try:
            with self._monitor.saving():
                path = self._store.save(state)
        except OSError as error:
            self._stats.note_failed_checkpoint()
            logger.error("checkpoint at step %d not saved: %s", self._stats.step, error)
            if final:
                raise
        else:
            self._saved_step = self._stats.step
            self._stats.note_checkpoint(path.stat().st_size)
            logger.info("saved %s", path)
