"""What is known about a run at one moment: the data behind the live table, the JSON lines and logs.csv."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from kubebeast_learner.algorithm.learner import UpdateStats
from kubebeast_learner.run.task_returns import RECENT_EPISODES, FinishedEpisode, TaskReturns

WINDOW_S = 30.0


class TaskStats(NamedTuple):
    """Of one task of several."""

    step: int
    """Env-steps trained on, over all lives of the run."""
    process_steps: int
    """Those of this process."""
    mean_episode_return: float | None
    """Unclipped, over its newest RECENT_EPISODES episodes."""


class RankStats(NamedTuple):
    """How one of several learners does, as it tells the others."""

    streams: int
    envs: int
    sps: float
    """Env-steps of its own batches a second, over its last WINDOW_S."""
    learner_queue_size: int
    empty_shares: int
    """Updates of its process that it joined without a batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One moment of a run. None where there is nothing to tell yet."""

    step: int
    total_steps: int
    num_updates: int
    num_skipped_updates: int
    process_updates: int
    """By this process, as the next two; those above are over all lives of the run."""
    process_skipped_updates: int
    process_episodes: int
    elapsed_s: float
    """Since this process began to train."""
    sps: float | None
    """Trained steps a second over the last WINDOW_S."""
    eta_s: float | None
    episodes: int
    mean_episode_return: float | None
    """Unclipped, over the newest RECENT_EPISODES episodes of each task; the mean over the tasks, however many episodes
    each has."""
    mean_episode_step: float | None
    """Over the newest RECENT_EPISODES episodes, of whatever task."""
    last_update: UpdateStats | None
    starved_ratio: float | None
    """Share of the last WINDOW_S that the learner waited for rollouts."""
    waited_s: float
    """All that time since this process started."""
    inference_busy_ratio: float | None
    """Share of the last WINDOW_S that the inference threads worked; None where actors run the model themselves."""
    learner_queue_size: int
    learner_queue_capacity: int
    rows_per_inference: float | None
    """Over the last WINDOW_S, as sps."""
    streams: int
    envs: int
    actor_restarts: int
    env_failures: int | None
    """Environments that failed under way since this process started; it and the steps below are for env-servers."""
    steps_in_flight: int | None
    """Sampled by this process, neither delivered nor dropped."""
    steps_dropped_partial: int | None
    """By this process: of unrolls that a stream's end left too short."""
    steps_dropped_stale: int | None
    """By this process: of unrolls older than max_policy_lag."""
    checkpoint_age_s: float | None
    checkpoint_time_s: float | None
    """When the last one was saved, in seconds since 1970."""
    checkpoint_bytes: int | None
    checkpoint_failures: int
    tasks: Mapping[str, TaskStats] = field(default_factory=dict)
    """By name, in the order of task_shares; empty without."""
    ranks: Sequence[RankStats] = ()
    """Of several learners, in the order of their ranks, as they last told; empty for one that is alone."""

    def flat(self) -> dict[str, Any]:
        """Every value by name, the last update's, step/TASK and mean_episode_return/TASK of each task, and of each of
        several learners streams/rank0 and so on among them, in the same order always.
        """
        values = asdict(self)
        update = values.pop("last_update") or {}
        del values["tasks"], values["ranks"]
        for name in ("step", "mean_episode_return"):
            values |= {f"{name}/{task}": getattr(stats, name) for task, stats in self.tasks.items()}
        for name in RankStats._fields:
            values |= {f"{name}/rank{rank}": getattr(stats, name) for rank, stats in enumerate(self.ranks)}
        return values | {field.name: update.get(field.name) for field in fields(UpdateStats)}


class RunStats:
    """Collects what happens in a run. Counters go on where a resumed run stopped. For one thread."""

    def __init__(
        self,
        *,
        total_steps: int,
        tasks: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """tasks: names of those in task_shares."""
        self._total_steps = total_steps
        self._clock = clock
        self._started_at = clock()
        self._waited_s = 0.0
        self._window: deque[_Totals] = deque([_Totals(self._started_at, 0, 0, 0, 0, 0.0, 0.0)])
        self._ranks: Sequence[RankStats] = ()
        self._tasks = TaskReturns()
        self._task_steps = dict.fromkeys(tasks, 0)
        self._resumed_task_steps = dict.fromkeys(tasks, 0)
        self._lengths: deque[int] = deque(maxlen=RECENT_EPISODES)
        self._untaken_returns: list[float] = []
        self._checkpoint: _Checkpoint | None = None
        self._last_update: UpdateStats | None = None
        self.step = 0
        self.num_updates = 0
        self.num_skipped_updates = 0
        self.num_episodes = 0
        self.checkpoint_failures = 0
        self._resumed = _Counts(0, 0, 0)

    def begin(self) -> None:
        """Training begins; time from before, spent waiting for the first env-server, does not count as elapsed."""
        self._started_at = self._clock()
        self._window = deque([_Totals(self._started_at, self.step, 0, 0, 0, self._waited_s, 0.0)])

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait for rollouts."""
        since = self._clock()
        try:
            yield
        finally:
            self._waited_s += self._clock() - since

    def add_update(self, update: UpdateStats, task_steps: Sequence[int] = ()) -> None:
        """Counts one batch; a skipped one was consumed without changing the weights. task_steps: of each task."""
        for task, steps in zip(self._task_steps, task_steps, strict=True):
            self._task_steps[task] += steps
        self.step += update.num_transitions
        self.num_updates += not update.skipped
        self.num_skipped_updates += update.skipped
        self._last_update = update

    def add_episodes(self, episodes: Iterable[FinishedEpisode]) -> None:
        episodes = list(episodes)
        self._tasks.add(episodes)
        for episode in episodes:
            self._lengths.append(int(episode.length))
            self._untaken_returns.append(float(episode.episode_return))
            self.num_episodes += 1

    def note_ranks(self, ranks: Sequence[RankStats]) -> None:
        """How all learners do, in the order of their ranks."""
        self._ranks = ranks

    def note_checkpoint(self, num_bytes: int) -> None:
        """One was saved."""
        self._checkpoint = _Checkpoint(self._clock(), time.time(), num_bytes)

    def note_failed_checkpoint(self) -> None:
        self.checkpoint_failures += 1

    def snapshot(self, actors: Mapping[str, int]) -> Snapshot:
        """actors: Actors.stats()."""
        now = self._totals(actors)
        since, num_threads = self._slide_window(now), actors.get("inference_threads", 0)
        window_s = now.time_s - since.time_s
        checkpoint = self._checkpoint
        sps = _ratio(now.step - since.step, window_s)
        return Snapshot(
            step=self.step,
            total_steps=self._total_steps,
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
            last_update=self._last_update,
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
            tasks={task: self._task_stats(task) for task in self._task_steps},
            ranks=self._ranks,
        )

    def own_rank(self, actors: Mapping[str, int], empty_shares: int) -> RankStats:
        """What this learner tells the others. actors: Actors.stats()."""
        now, since = self._totals(actors), self._window[0]
        return RankStats(
            streams=actors["streams"],
            envs=actors["envs"],
            sps=_ratio(now.delivered - since.delivered, now.time_s - since.time_s) or 0.0,
            learner_queue_size=actors["rollouts_queued"],
            empty_shares=empty_shares,
        )

    def mean_of_last(self, num_episodes: int) -> dict[str, float]:
        """By task, the mean unclipped return of its newest episodes, at most RECENT_EPISODES."""
        return self._tasks.means(num_episodes)

    def take_episode_returns(self) -> tuple[float, ...]:
        """Unclipped returns of the episodes since the last call: PolyBeast's column episode_returns."""
        returns = tuple(self._untaken_returns)
        self._untaken_returns.clear()
        return returns

    def state_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {
            "num_updates": self.num_updates,
            "num_skipped_updates": self.num_skipped_updates,
            "num_episodes": self.num_episodes,
            "task_returns": self._tasks.state_dict(),
            "task_steps": dict(self._task_steps),
            "lengths": list(self._lengths),
        }

    def load_state_dict(self, state: Mapping[str, Any], step: int, env_id: str) -> None:
        """Goes on at `step`; speed counts from here. env_id: the task of returns that were saved without one."""
        self.step = step
        self.num_updates = state["num_updates"]
        self.num_skipped_updates = state["num_skipped_updates"]
        self.num_episodes = state["num_episodes"]
        self._resumed = _Counts(self.num_updates, self.num_skipped_updates, self.num_episodes)
        self._tasks.load_state_dict(state["task_returns"] if "task_returns" in state else {env_id: state["returns"]})
        self._task_steps |= {task: n for task, n in state.get("task_steps", {}).items() if task in self._task_steps}
        self._resumed_task_steps = dict(self._task_steps)
        self._lengths.extend(state["lengths"])
        self._window = deque([_Totals(self._clock(), step, 0, 0, 0, self._waited_s, 0.0)])

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
        )

    def _slide_window(self, now: "_Totals") -> "_Totals":
        """The totals of about WINDOW_S ago."""
        self._window.append(now)
        while self._window[1].time_s <= now.time_s - WINDOW_S:
            self._window.popleft()
        return self._window[0]


class _Totals(NamedTuple):
    time_s: float
    step: int
    delivered: int
    """Of its own env-steps."""
    batches: int
    rows: int
    waited_s: float
    busy_s: float


class _Counts(NamedTuple):
    """What earlier lives of the run have done."""

    num_updates: int
    num_skipped_updates: int
    num_episodes: int


class _Checkpoint(NamedTuple):
    at: float
    time_s: float
    num_bytes: int


def _share(part_s: float, whole_s: float) -> float | None:
    """At most 1: the two are not read at the same instant."""
    return min(1.0, part_s / whole_s) if whole_s > 0 else None


def _ratio(amount: float, per: float) -> float | None:
    return amount / per if amount > 0 and per > 0 else None


def _mean(values: Iterable[float]) -> float | None:
    items = list(values)
    return sum(items) / len(items) if items else None
