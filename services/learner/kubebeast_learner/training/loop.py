"""Training loop of one run, with its logs and checkpoints.

actors -> rollouts -> learner -> weights -> actors

Each of several ranks has a loop like this one, and takes its turns in step with the others.
"""

import logging
import math
import shlex
import threading
from collections.abc import Callable, Sequence

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.actors.base import Actors
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import empty_rollout
from kubebeast_learner.algorithm.options.replay import ReplayBuffer, make_replay
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.league.league import League
from kubebeast_learner.machine.out_of_memory import naming_what_to_lower
from kubebeast_learner.profiling.timer import StepTimer, Timer
from kubebeast_learner.profiling.trace import Profiler, span
from kubebeast_learner.ranks.group import gather
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.ranks.turns import Turn, Turns
from kubebeast_learner.recording.opening import open_recorder
from kubebeast_learner.recording.recorder import NoRecorder, Recorder
from kubebeast_learner.run.callbacks import Callbacks
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.ending import end_of
from kubebeast_learner.run.facts import describe_run
from kubebeast_learner.run.initial_weights import InitialWeights
from kubebeast_learner.run.snapshot import Snapshot
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.run.task_returns import Episode
from kubebeast_learner.training.build import assemble_learner
from kubebeast_learner.training.checkpoints.saving import Saving
from kubebeast_learner.training.failed_episodes import FailedEpisodes, remark
from kubebeast_learner.training.meeting import Met, meet_environment, wait_for_room
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import Progress
from kubebeast_learner.training.uploads import Uploads
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog

logger = logging.getLogger(__name__)

POLL_MS = 200
"""Longest wait for rollouts, and thus longest delay of a stop."""
CHECK_INTERVAL_S = 0.5
NEWS_INTERVAL_S = 0.5
"""Interval at which ranks exchange finished episodes and statistics."""
SUMMARY_EPISODES = 20


class Training:
    """One run of the learner, from the first env-server to the last checkpoint. Not thread-safe."""

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
        callbacks: Callbacks | None = None,
        levels: Levels | None = None,
        league: League | None = None,
        require_run: Callable[[], None] = lambda: None,
    ) -> None:
        """Only the first rank saves and has callbacks. `patience_s` is the longest wait of the other ranks for one
        without a batch. `require_run` raises an error if the run no longer belongs to this process.
        """
        self._config, self._actors, self._store, self._run_log = config, actors, store, run_log
        self._callbacks = callbacks or Callbacks()
        self._progress, self._monitor = progress, monitor
        self._tasks, run = config.tasks.tasks, config.run
        self._stats = RunStats(
            total_steps=run.total_steps, tasks=self._tasks, log_info=run.log_info, levels=levels, league=league
        )
        self._saving = Saving(
            config,
            store,
            run_log,
            actors=actors,
            stats=self._stats,
            monitor=monitor,
            callbacks=self._callbacks,
            is_enabled=place.is_first and not config.run.disable_checkpoint,
        )
        self._place, self._require_run, self._notices = place, require_run, monitor.notices
        self._turns = monitor.turns = Turns(place.num_ranks, patience_s)
        monitor.note_files(run_log.folder if place.is_first else None, run_log.failures.counts)
        self._news = Timer(NEWS_INTERVAL_S)
        self._replay: ReplayBuffer | None = None
        self._uploads: Uploads
        self._recorder: Recorder | NoRecorder
        self._first_step = 0
        self._end = self._due_end = ""
        self._has_begun = False
        self._failed_episodes = FailedEpisodes()
        self.decided: Met[TrainingConfig] | None = None
        """After `run`: the environment, if it has decided on settings and nothing was trained; else None."""

    def run(
        self, stop: threading.Event, saved: tuple[str, Checkpoint] | None, initial: InitialWeights | None = None
    ) -> None:
        """Trains until total_steps or `stop`, then drains the actors and saves a checkpoint; or only meets the
        environment, if that decides on settings.

        On an error it saves one and raises; if the training has diverged and there are checkpoints, none is added.
        `saved` is place and state of the checkpoint to resume, or None for a fresh start, with `initial` weights if
        there are any. Raises ConfigError if the settings do not fit the environment, the checkpoint or the weights,
        ActorsError, CheckpointError, DivergedError, InferenceError, NotEnoughMemoryError, OSError, RankLostError and
        RunFolderError.
        """
        run = self._config.run
        if saved is not None:
            place, checkpoint = saved
            with taking_over(place, "stats"):
                self._stats.load_state_dict(checkpoint.stats, checkpoint.step, checkpoint.env_spec.env_id)
            self._first_step = checkpoint.step
            self._saving.resume(checkpoint)
            logger.info("resuming %s at step %d of %d", place, checkpoint.step, run.total_steps)
            self._end = end_of(run, self._stats)
            if self._end:
                self._stats.end()
                logger.warning("nothing is left of the run: %s; give a larger number to go on", self._end)
                self._begin(checkpoint.env_spec)
                self._actors.drain(finished=True)
                return
        if self._config.recipe.note:
            logger.info("%s", self._config.recipe.note)
        if not wait_for_room(self._saving.room(), self._monitor, stop):
            return
        met = meet_environment(self._config, self._actors, self._monitor, self._place, POLL_MS, stop)
        if met is not None and met.config is not self._config:
            self.decided = met
        elif met is not None:
            self._train(met, saved, initial, stop)

    @property
    def is_complete(self) -> bool:
        """True if the run has reached its end."""
        return self._stats.step >= self._config.run.total_steps or self._end != ""

    def summary(self) -> str:
        """Returns a readable summary of a few lines: results and folder of the run."""
        run, snapshot = self._config.run, self._snapshot()
        scores = self._stats.mean_of_last(SUMMARY_EPISODES)
        score = ", ".join(f"{mean:.2f}" + f" in {task}" * (len(scores) > 1) for task, mean in scores.items())
        trained = snapshot.step - self._first_step
        lines = [
            f"{snapshot.step:,} steps, {trained:,} of them now at {trained / snapshot.elapsed_s:,.0f} steps/s; "
            f"mean return of the last {SUMMARY_EPISODES} games: {score or 'none finished'}{remark(snapshot)}",
        ]
        if self._has_begun:
            lines.append(f"logs and checkpoints: {self._store.place}")
        if self._store.newest_size() > 0:
            where = f"--savedir {shlex.quote(str(run.savedir))} --xpid {shlex.quote(run.xpid)}"
            lines.append(f"play it: kubebeast eval {where}")
        return "\n".join(lines)

    def _train(
        self,
        met: Met[TrainingConfig],
        saved: tuple[str, Checkpoint] | None,
        initial: InitialWeights | None,
        stop: threading.Event,
    ) -> None:
        spec, learner = met.spec, assemble_learner(self._config, met.spec, saved, self._place, met.model, initial)
        run, batch = self._config.run, self._config.steps_per_batch
        if run.total_steps < batch:
            text = (
                "total_steps = %d is less than one batch, unroll_length * batch_size = %d env-steps: one update is all"
            )
            logger.warning(text, run.total_steps, batch)
        seed = self._place.seed(run.seed) + learner.version  # a resumed run must not repeat its earlier draws
        self._replay = make_replay(self._config.replay, self._config.rollout.batch_size, seed)
        self._empty = empty_rollout(learner.model, spec.observation)
        logger.info("training on %s: %s", learner.device, spec)
        self._monitor.phases = learner.phases
        self._uploads = Uploads(self._actors, learner.device, learner.phases)
        self._stats.begin()
        recorder = open_recorder(self._config, spec, self._place, self._run_log, learner.version)
        profiler = Profiler(run.profile and self._place.is_first, self._run_log.folder, self._actors.profile_window)
        self._actors.start(learner.model, learner.device, learner.version)
        self._begin(spec)
        try:
            with recorder as self._recorder, profiler:
                self._loop(learner, spec, stop, profiler)
            self._actors.drain(finished=self.is_complete)
            self._saving.save_last(learner, spec, stop, is_complete=self.is_complete)
        except Exception as error:
            self._saving.save_after_error(learner, spec, error)
            self._callbacks.on_end(self._stats.step, f"{type(error).__name__}: {error}")
            raise
        self._callbacks.on_end(self._stats.step, "")
        self._actors.stop()

    def _begin(self, spec: EnvSpec) -> None:
        """Begins the run: from here on it is in the folder, in TensorBoard, and the latest."""
        self._has_begun = True
        self._run_log.record(as_settings(self._config), describe_run(self._config))
        self._run_log.note_environment(spec.env_id, spec.to_plain()["env_config"])

    def _loop(self, learner: Learner, spec: EnvSpec, stop: threading.Event, profiler: Profiler) -> None:
        run = self._config.run
        check, by_steps = Timer(CHECK_INTERVAL_S), StepTimer(run.total_steps, lambda: self._stats.step)
        log = by_steps if self._actors.is_repeatable else Timer(run.log_interval_s)
        show, is_last = Timer(self._progress.interval_s), False
        self._turns.begin_wait()
        while not self.is_complete and not is_last:
            self._monitor.note_turn()
            with span("dequeue"), self._stats.waiting():
                rollout = self._uploads.next(0 if self._turns.is_starving else POLL_MS)
            if self._actors.ended:
                self._end_now(self._actors.ended)
            elif self._turns.must_join(has_batch=rollout is not None, stop=stop.is_set(), notice=self._notices.is_new):
                is_last = self._take_turn(rollout, learner, stop.is_set())
                profiler.step()
            if check.is_due():
                self._require_run()
                self._actors.check()
                self._saving.settle()
                self._snapshot()
            if log.is_due():
                self._log()
                self._seek_end()
            if show.is_due():
                self._progress.show(self._snapshot())
            if self._saving.begin_if_due(learner, spec):
                self._recorder.end_shard()
        self._tell_news()
        self._log()
        self._progress.show(self._snapshot())

    def _take_turn(self, rollout: Rollout | None, learner: Learner, stop: bool) -> bool:
        """Makes one update with the batches of all ranks, if there are any; `rollout` is this rank's.

        Returns True if it was the last update, as a rank was asked to stop.
        """
        if rollout is not None and self._replay is not None:
            with naming_what_to_lower("the replay", "replay_capacity", "unroll_length"):
                rollout = self._replay.mix(rollout)
        batch = self._empty if rollout is None else rollout
        turn = self._turns.agree(
            has_batch=rollout is not None,
            num_valid=int(batch.valid.sum()),
            num_fresh=batch.num_fresh_transitions,
            task_steps=batch.steps_of_tasks(len(self._tasks)),
            stop=stop,
            tells_news=self._place.is_first and self._news.is_due(),
            num_notices=self._notices.take(),
        )
        if turn.tells_news:
            self._tell_news()
        if turn.num_notices:
            self._note_notices(turn.num_notices)
        if rollout is not None:
            self._recorder.add(rollout, update=learner.version, step=self._stats.step)
        if turn.num_batches > 0:
            self._train_on(batch, learner, turn)
        self._turns.begin_wait()
        return turn.is_last

    def _tell_news(self) -> None:
        """Adds the episodes of all ranks, and the statistics of each of several, equally on every rank."""
        ended = self._actors.take_episodes()
        mine = list(map(Episode.of, ended))
        if self._place.is_alone:
            self._add_episodes(mine)
            return
        ranks = gather((mine, self._stats.own_rank(self._actors.stats(), self._turns.num_empty), self._due_end))
        for episodes, _, _ in ranks:
            self._add_episodes(episodes)
        self._stats.note_ranks([rank for _, rank, _ in ranks])
        self._end_now(ranks[0][2])

    def _note_notices(self, num_notices: int) -> None:
        """Saves and logs at once: a node may be gone before the next checkpoint and the next row are due."""
        self._stats.node_notices += num_notices
        self._saving.request()
        self._log()

    def _seek_end(self) -> None:
        """Ends the run if it is time. Of several ranks the first decides, and the others receive that as news."""
        self._due_end = (self._callbacks.end or end_of(self._config.run, self._stats)) if self._place.is_first else ""
        if self._place.is_alone:
            self._end_now(self._due_end)

    def _end_now(self, reason: str) -> None:
        if reason and not self.is_complete:
            self._end = reason
            self._stats.end()
            logger.info("the run ends: %s", reason)

    def _add_episodes(self, episodes: Sequence[Episode]) -> None:
        self._stats.add_episodes(episodes)
        for episode in episodes:
            self._callbacks.on_episode(self._stats.step, episode)

    def _train_on(self, rollout: Rollout, learner: Learner, turn: Turn) -> None:
        size = self._config.rollout
        what = f"an update of {size.batch_size} unrolls of {size.unroll_length} transitions on {learner.device}"
        # The next batch: none after the last, changed by a replay, or to be played after this update.
        is_last = turn.is_last or self._stats.step + rollout.num_fresh_transitions >= self._config.run.total_steps
        waits = is_last or self._replay is not None or self._actors.is_repeatable or size.wait_for_updates
        with naming_what_to_lower(what, "batch_size", "unroll_length", "the size of the model"):
            rollout = self._uploads.on_device(rollout)
            update = learner.update(rollout, self._stats.step, turn.share, None if waits else self._uploads.fetch)
        if update.skipped and self._replay is not None:
            self._replay.forget_fresh()
        if not update.skipped:
            with learner.phases.measure("publish"):
                self._actors.publish(update.version)
        self._stats.add_update(update, turn.task_steps)
        self._callbacks.on_update(self._stats.step, update.numbers())
        if self._callbacks.end:
            self._seek_end()
        self._monitor.note_update()

    def _snapshot(self) -> Snapshot:
        if self._place.is_alone:
            self._tell_news()
        snapshot = self._stats.snapshot(self._actors.stats())
        self._monitor.snapshot = snapshot
        return snapshot

    def _log(self) -> None:
        snapshot = self._snapshot()
        self._failed_episodes.note(snapshot)
        self._run_log.log(snapshot.columns() | self._stats.take_new_episodes())
