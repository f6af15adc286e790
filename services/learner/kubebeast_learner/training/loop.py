"""The training loop of one run, and what is logged and saved on the way.

actors -> rollouts -> learner -> weights -> actors

Of several ranks each has a loop like this one, which takes its turns in step with the others.
"""

import logging
import math
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubebeast_learner.actors.base import Actors
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import empty_rollout
from kubebeast_learner.algorithm.replay import ReplayBuffer, make_replay
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.config.sources import as_settings
from kubebeast_learner.profiling.timer import Timer
from kubebeast_learner.profiling.trace import Profiler, span
from kubebeast_learner.ranks.group import gather
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.ranks.turns import Turn, Turns
from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.log import RunLog
from kubebeast_learner.run.rank_log import RankLog
from kubebeast_learner.run.stats import RunStats, Snapshot
from kubebeast_learner.run.task_returns import Episode
from kubebeast_learner.training.build import assemble_learner
from kubebeast_learner.training.meeting import wait_for_env_spec
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import Progress

logger = logging.getLogger(__name__)

POLL_MS = 200
"""Longest wait for rollouts, and so for a stop to be noticed."""
CHECK_INTERVAL_S = 0.5
NEWS_INTERVAL_S = 0.5
"""How often ranks tell each other of finished episodes and of how they do."""
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
        run_log: RunLog | RankLog,
        progress: Progress,
        monitor: Monitor,
        place: Place = ALONE,
        patience_s: float = math.inf,
    ) -> None:
        """place: among the ranks that train together, each of which has one of these and of which the first saves.
        patience_s: longest that the others wait for a rank that has no batch.
        """
        self._config = config
        self._actors = actors
        self._store = store
        self._run_log = run_log
        self._progress = progress
        self._monitor = monitor
        self._tasks = config.tasks.tasks
        self._stats = RunStats(total_steps=config.run.total_steps, tasks=self._tasks)
        self._place = place
        self._turns = monitor.turns = Turns(place.num_ranks, patience_s)
        self._news = Timer(NEWS_INTERVAL_S)
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
        spec = wait_for_env_spec(self._actors, self._monitor, self._place.num_ranks, POLL_MS, stop)
        if spec is not None:
            self._run_log.note_environment(spec.env_id, spec.to_plain()["env_config"])
            self._train(spec, saved, stop)

    @property
    def is_complete(self) -> bool:
        """Whether all total_steps were made."""
        return self._stats.step >= self._config.run.total_steps

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

    def _train(self, spec: EnvSpec, saved: tuple[Path, dict[str, Any]] | None, stop: threading.Event) -> None:
        learner = assemble_learner(self._config, spec, saved, self._place)
        seed = (
            self._place.seed(self._config.run.seed) + learner.version
        )  # a resumed run must not draw again what it has drawn before
        self._replay = make_replay(self._config.replay, self._config.rollout.batch_size, seed)
        self._empty = empty_rollout(learner.model, spec.observation)
        logger.info("training on %s: %s", learner.device, spec)
        self._monitor.phases = learner.phases
        self._stats.begin()
        self._actors.start(learner.model, learner.device, learner.version)
        try:
            with Profiler(
                self._config.run.profile and self._place.is_first, self._run_log.folder, self._actors.profile_window
            ) as profiler:
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
        is_last = False
        self._turns.begin_wait()
        while self._stats.step < run.total_steps and not is_last:
            self._monitor.note_turn()
            with span("dequeue"), self._stats.waiting():
                rollout = self._actors.next_rollout(0 if self._turns.is_starving else POLL_MS)
            if self._turns.must_join(has_batch=rollout is not None, stop=stop.is_set()):
                is_last = self._take_turn(rollout, learner, stop.is_set())
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
        self._tell_news()
        self._log()
        self._progress.show(self._snapshot())

    def _take_turn(self, rollout: Rollout | None, learner: Learner, stop: bool) -> bool:
        """One update with the batches that ranks have, if any has; `rollout` is this one's. Returns whether it was the
        last, as a rank was asked to stop.
        """
        if rollout is not None and self._replay is not None:
            rollout = self._replay.mix(rollout)
        batch = self._empty if rollout is None else rollout
        turn = self._turns.agree(
            has_batch=rollout is not None,
            num_valid=int(batch.valid.sum()),
            num_fresh=batch.num_fresh_transitions,
            task_steps=batch.steps_of_tasks(len(self._tasks)),
            stop=stop,
            tells_news=self._place.is_first and self._news.is_due(),
        )
        if turn.tells_news:
            self._tell_news()
        if turn.num_batches > 0:
            self._train_on(batch, learner, turn)
        self._turns.begin_wait()
        return turn.is_last

    def _tell_news(self) -> None:
        """Adds the episodes of all ranks, and how each of several does, on each of them alike."""
        mine = [Episode(each.env_id, each.episode_return, each.length) for each in self._actors.take_episodes()]
        if self._place.is_alone:
            self._stats.add_episodes(mine)
            return
        ranks = gather((mine, self._stats.own_rank(self._actors.stats(), self._turns.num_empty)))
        for episodes, _ in ranks:
            self._stats.add_episodes(episodes)
        self._stats.note_ranks([rank for _, rank in ranks])

    def _train_on(self, rollout: Rollout, learner: Learner, turn: Turn) -> None:
        with learner.phases.measure("to_device"):
            rollout = rollout.to(learner.device).stacked()
        update = learner.update(rollout, self._stats.step, turn.share)
        if not update.skipped:
            with learner.phases.measure("publish"):
                self._actors.publish(update.version)
        self._stats.add_update(update, turn.task_steps)
        self._monitor.note_update()

    def _snapshot(self) -> Snapshot:
        if self._place.is_alone:
            self._tell_news()
        snapshot = self._stats.snapshot(self._actors.stats())
        self._monitor.snapshot = snapshot
        return snapshot

    def _log(self) -> None:
        values = {name: value for name, value in self._snapshot().flat().items() if name not in NOT_LOGGED}
        self._run_log.log(values | {"episode_returns": self._stats.take_episode_returns()})

    def _save(self, learner: Learner, spec: EnvSpec, *, final: bool = False) -> None:
        """Saves what is new, on the first rank. A full disk is logged and counted; OSError for the final checkpoint."""
        has_nothing_new = self._stats.step == self._saved_step
        if not self._place.is_first or self._config.run.disable_checkpoint or has_nothing_new:
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
