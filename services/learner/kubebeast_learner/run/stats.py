"""Statistics of a run: the data behind the live table, the JSON lines and logs.csv."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kubebeast_learner.algorithm.learner import UpdateStats
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.league.league import League
from kubebeast_learner.run.info_means import InfoMeans
from kubebeast_learner.run.new_episodes import NewEpisodes
from kubebeast_learner.run.snapshot import WINDOW_S, RankStats, Snapshot, TaskStats
from kubebeast_learner.run.task_returns import RECENT_EPISODES, FinishedEpisode, TaskReturns


class RunStats:
    """A collector of a run's statistics. Counters of a resumed run continue. Not thread-safe."""

    def __init__(
        self,
        *,
        total_steps: int,
        tasks: Sequence[str] = (),
        log_info: Sequence[str] = (),
        levels: Levels | None = None,
        league: League | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tasks` are the names in task_shares, `log_info` the keys of numbers in the info of episodes.

        `levels` and `league` receive the episodes, the league also the updates; both are part of the state.
        """
        self._total_steps = total_steps
        self._has_ended = False
        self._clock = clock
        self._started_at = clock()
        self._earlier_s = 0.0
        self._waited_s = 0.0
        self._window: deque[_Totals] = deque([_Totals(self._started_at, 0, 0, 0, 0, 0.0, 0.0)])
        self._ranks: Sequence[RankStats] = ()
        self._tasks = TaskReturns()
        self._task_steps = dict.fromkeys(tasks, 0)
        self._resumed_task_steps = dict.fromkeys(tasks, 0)
        self._lengths: deque[int] = deque(maxlen=RECENT_EPISODES)
        self._infos = InfoMeans(log_info)
        self._levels, self._league = levels, league
        self._num_lags, self._sum_of_lags = 0, 0.0
        self._new_episodes = NewEpisodes()
        self._checkpoint: _Checkpoint | None = None
        self._last_update: UpdateStats | None = None
        self.step = 0
        self.num_updates = 0
        self.num_skipped_updates = 0
        self.num_episodes = 0
        self.checkpoint_failures = 0
        self.node_notices = 0
        self._resumed = _Counts(0, 0, 0)

    def end(self) -> None:
        """Makes the newest step the last one of the run, as alerts compare the two."""
        self._has_ended = True

    def begin(self) -> None:
        """Starts the time of training; the wait for the first env-server does not count as elapsed."""
        self._started_at = self._clock()
        self._window = deque([_Totals(self._started_at, self.step, 0, 0, 0, self._waited_s, 0.0)])

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Measures a wait for rollouts."""
        since = self._clock()
        try:
            yield
        finally:
            self._waited_s += self._clock() - since

    def add_update(self, update: UpdateStats, task_steps: Sequence[int] = ()) -> None:
        """Counts one batch. Its steps, for the run and in `task_steps` for each task, count unless it was skipped."""
        if not update.skipped:
            self.step += update.num_transitions
            for task, steps in zip(self._task_steps, task_steps, strict=True):
                self._task_steps[task] += steps
            if self._league is not None:
                self._league.note_update(update.version, update.num_transitions)
        self.num_updates += not update.skipped
        self.num_skipped_updates += update.skipped
        self._last_update = update
        self._num_lags += 1
        self._sum_of_lags += update.policy_lag

    def add_episodes(self, episodes: Iterable[FinishedEpisode]) -> None:
        episodes = list(episodes)
        self._tasks.add(episodes)
        self._infos.add(episodes)
        for episode in episodes:
            self._lengths.append(int(episode.length))
            self._new_episodes.add(float(episode.episode_return))
            self.num_episodes += 1
            if self._levels is not None:
                self._levels.add(episode.options, float(episode.episode_return), int(episode.length), episode.info)
            if self._league is not None:
                self._league.add_game(episode.opponents, float(episode.episode_return))

    def note_ranks(self, ranks: Sequence[RankStats]) -> None:
        """Sets the statistics of all learners, in the order of their ranks."""
        self._ranks = ranks

    def note_checkpoint(self, num_bytes: int) -> None:
        """Records a saved checkpoint."""
        self._checkpoint = _Checkpoint(self._clock(), time.time(), num_bytes)

    def note_failed_checkpoint(self) -> None:
        self.checkpoint_failures += 1

    def snapshot(self, actors: Mapping[str, int]) -> Snapshot:
        """Returns the state of the run; `actors` is the result of Actors.stats()."""
        now = self._totals(actors)
        since, num_threads = self._slide_window(now), actors.get("inference_threads", 0)
        window_s = now.time_s - since.time_s
        checkpoint = self._checkpoint
        sps = _ratio(now.step - since.step, window_s)
        return Snapshot(
            step=self.step,
            total_steps=self.step if self._has_ended else self._total_steps,
            num_updates=self.num_updates,
            num_skipped_updates=self.num_skipped_updates,
            process_updates=self.num_updates - self._resumed.num_updates,
            process_skipped_updates=self.num_skipped_updates - self._resumed.num_skipped_updates,
            process_episodes=self.num_episodes - self._resumed.num_episodes,
            elapsed_s=now.time_s - self._started_at,
            sps=sps,
            eta_s=max(0, self._total_steps - self.step) / sps if sps else None,
            episodes=self.num_episodes,
            mean_episode_return=_mean(self._tasks.means().values()),
            mean_episode_step=_mean(self._lengths),
            last_update=self._with_mean_lag(since, now),
            starved_ratio=_share(now.waited_s - since.waited_s, window_s),
            waited_s=now.waited_s,
            inference_busy_ratio=_share(now.busy_s - since.busy_s, window_s * num_threads),
            learner_queue_size=actors["rollouts_queued"],
            learner_queue_capacity=max(0, actors["rollout_queue_capacity"] - actors.get("rollouts_running", 0)),
            rows_per_inference=_ratio(now.rows - since.rows, now.batches - since.batches),
            streams=actors["streams"],
            envs=actors["envs"],
            actor_restarts=actors["restarts"],
            env_failures=actors.get("env_interruptions"),
            steps_in_flight=actors.get("steps_in_flight"),
            steps_dropped_partial=actors.get("steps_dropped_partial"),
            steps_dropped_stale=actors.get("steps_dropped_stale"),
            checkpoint_age_s=None if checkpoint is None else now.time_s - checkpoint.at,
            checkpoint_time_s=None if checkpoint is None else checkpoint.time_s,
            checkpoint_bytes=None if checkpoint is None else checkpoint.num_bytes,
            checkpoint_failures=self.checkpoint_failures,
            node_notices=self.node_notices,
            tasks={task: self._task_stats(task) for task in self._task_steps},
            infos=self._infos.means(),
            curriculum={} if self._levels is None else self._levels.numbers(),
            league={} if self._league is None else self._league.numbers(),
            ranks=self._ranks,
        )

    def own_rank(self, actors: Mapping[str, int], empty_shares: int) -> RankStats:
        """Returns the statistics that are sent to the other learners; `actors` is the result of Actors.stats()."""
        now, since = self._totals(actors), self._window[0]
        return RankStats(
            streams=actors["streams"],
            envs=actors["envs"],
            sps=_ratio(now.delivered - since.delivered, now.time_s - since.time_s) or 0.0,
            learner_queue_size=actors["rollouts_queued"],
            empty_shares=empty_shares,
        )

    @property
    def trained_s(self) -> float:
        """Seconds of training, with those before the resume."""
        return self._earlier_s + self._clock() - self._started_at

    def lowest_mean_return(self) -> float | None:
        """Returns the lowest mean return of a task; None if a task has fewer than RECENT_EPISODES episodes."""
        if any(task not in self._tasks.means() for task in self._task_steps):
            return None
        return self._tasks.lowest_mean()

    def training_score(self) -> float | None:
        """Returns the mean return of the newest RECENT_EPISODES episodes of each task, then over tasks with equal
        weights; None until an episode of every task in task_shares has ended.
        """
        means = self._tasks.means()
        return None if any(task not in means for task in self._task_steps) else _mean(means.values())

    def mean_of_last(self, num_episodes: int) -> dict[str, float]:
        """Returns the mean unclipped return of the newest episodes by task, at most RECENT_EPISODES of each."""
        return self._tasks.means(num_episodes)

    def take_new_episodes(self) -> dict[str, int | float | tuple[float, ...] | None]:
        """Returns the episodes since the last call as columns of logs.csv, see NewEpisodes."""
        taken, self._new_episodes = self._new_episodes, NewEpisodes()
        return taken.columns()

    def state_dict(self, *, after_error: bool = False) -> dict[str, Any]:
        """Returns plain values for a checkpoint. Raises CurriculumError, unless it is one after an error."""
        levels = self._levels
        return {
            "trained_s": self.trained_s,
            "num_updates": self.num_updates,
            "num_skipped_updates": self.num_skipped_updates,
            "num_episodes": self.num_episodes,
            "task_returns": self._tasks.state_dict(),
            "task_steps": dict(self._task_steps),
            "lengths": list(self._lengths),
            "infos": self._infos.state_dict(),
            "levels": {} if levels is None else levels.rescued_state() if after_error else levels.state_dict(),
            "league": {} if self._league is None else self._league.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], step: int, env_id: str) -> None:
        """Continues at `step`; rates start from here. `env_id` is the task of returns that were saved without one."""
        self.step = step
        self._earlier_s, self._started_at = float(state.get("trained_s", 0.0)), self._clock()
        self.num_updates = state["num_updates"]
        self.num_skipped_updates = state["num_skipped_updates"]
        self.num_episodes = state["num_episodes"]
        self._resumed = _Counts(self.num_updates, self.num_skipped_updates, self.num_episodes)
        self._tasks.load_state_dict(state["task_returns"] if "task_returns" in state else {env_id: state["returns"]})
        self._task_steps |= {task: n for task, n in state.get("task_steps", {}).items() if task in self._task_steps}
        self._resumed_task_steps = dict(self._task_steps)
        self._lengths.extend(state["lengths"])
        self._infos.load_state_dict(state.get("infos", {}))
        if self._levels is not None:
            self._levels.load_state_dict(state.get("levels", {}))
        if self._league is not None:
            self._league.load_state_dict(state.get("league", {}))
        self._window = deque([_Totals(self._clock(), step, 0, 0, 0, self._waited_s, 0.0)])

    def _with_mean_lag(self, since: "_Totals", now: "_Totals") -> UpdateStats | None:
        if self._last_update is None or now.num_lags == since.num_lags:
            return self._last_update
        mean = (now.sum_of_lags - since.sum_of_lags) / (now.num_lags - since.num_lags)
        return replace(self._last_update, policy_lag=mean)

    def _task_stats(self, task: str) -> TaskStats:
        steps, mean_return = self._task_steps[task], self._tasks.means().get(task)
        return TaskStats(steps, steps - self._resumed_task_steps[task], mean_return)

    def _totals(self, actors: Mapping[str, int]) -> "_Totals":
        return _Totals(
            time_s=self._clock(),
            step=self.step,
            delivered=actors.get("steps_delivered", 0),
            batches=actors["inference_batches"],
            rows=actors["inference_rows"],
            waited_s=self._waited_s,
            busy_s=actors.get("inference_busy_us", 0) / 1e6,
            num_lags=self._num_lags,
            sum_of_lags=self._sum_of_lags,
        )

    def _slide_window(self, now: "_Totals") -> "_Totals":
        """Appends `now` and returns the totals of about WINDOW_S ago."""
        self._window.append(now)
        while self._window[1].time_s <= now.time_s - WINDOW_S:
            self._window.popleft()
        return self._window[0]


class _Totals(NamedTuple):
    time_s: float
    step: int
    delivered: int
    """Env-steps that this learner's own actors delivered."""
    batches: int
    rows: int
    waited_s: float
    busy_s: float
    num_lags: int = 0
    sum_of_lags: float = 0.0


class _Counts(NamedTuple):
    """Counts of earlier processes of the run."""

    num_updates: int
    num_skipped_updates: int
    num_episodes: int


class _Checkpoint(NamedTuple):
    at: float
    time_s: float
    num_bytes: int


def _share(part_s: float, whole_s: float) -> float | None:
    """Returns a share of at most 1, as the two values are not read at the same instant."""
    return min(1.0, part_s / whole_s) if whole_s > 0 else None


def _ratio(amount: float, per: float) -> float | None:
    return amount / per if amount > 0 and per > 0 else None


def _mean(values: Iterable[float]) -> float | None:
    items = list(values)
    return sum(items) / len(items) if items else None
