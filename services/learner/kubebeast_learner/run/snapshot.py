"""The state of a run at one moment: what the live table, the JSON lines, logs.csv and the metrics show."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from kubebeast_learner.algorithm.learner import UpdateStats
from kubebeast_learner.algorithm.losses import IMPALA_PARTS

WINDOW_S = 30.0
COLUMNS = (
    *("step", "num_updates", "num_skipped_updates", "elapsed_s", "sps"),
    *("episodes", "mean_episode_return", "mean_episode_step"),
    *("starved_ratio", "inference_busy_ratio", "learner_queue_size", "rows_per_inference"),
    *("streams", "envs", "actor_restarts", "env_failures"),
    *("steps_in_flight", "steps_dropped_partial", "steps_dropped_stale"),
    *("checkpoint_age_s", "checkpoint_failures", "node_notices"),
    *("total_loss", *IMPALA_PARTS, "grad_norm", "policy_lag", "learning_rate", "entropy_cost"),
)
"""Values of a snapshot that are columns of logs.csv, including those of TorchBeast. Further columns, with a slash in
their names, are those of tasks, ranks, parts of a user's loss, numbers in the info of episodes, of a curriculum and of
a league.
"""
LOSS_PART = "loss/"
"""Prefix of the columns with the parts of a user's loss."""
INFO = "info/"
"""Prefix of the columns with numbers in the info of episodes."""
CURRICULUM = "curriculum/"
"""Prefix of the columns with numbers of a curriculum."""
LEAGUE = "league/"
"""Prefix of the columns with numbers of a league."""


class TaskStats(NamedTuple):
    """Statistics of one of several tasks."""

    step: int
    """Env-steps trained on, including those of earlier processes of the run."""
    process_steps: int
    """Env-steps trained on by this process."""
    mean_episode_return: float | None
    """Mean unclipped return of its newest RECENT_EPISODES episodes."""


class RankStats(NamedTuple):
    """Statistics of one of several learners, which it sends to the others."""

    streams: int
    envs: int
    sps: float
    """Env-steps per second of its own batches, over its last WINDOW_S."""
    learner_queue_size: int
    empty_shares: int
    """Updates that its process joined without a batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The state of a run at one moment. Values are None until they are known."""

    step: int
    total_steps: int
    num_updates: int
    num_skipped_updates: int
    process_updates: int
    """Updates of this process, like the next two counts; those above include earlier processes of the run."""
    process_skipped_updates: int
    process_episodes: int
    elapsed_s: float
    """Time since this process began to train."""
    sps: float | None
    """Trained steps per second over the last WINDOW_S."""
    eta_s: float | None
    episodes: int
    mean_episode_return: float | None
    """Mean unclipped return of the newest RECENT_EPISODES episodes of each task, then over tasks with equal weights."""
    mean_episode_step: float | None
    """Mean length of the newest RECENT_EPISODES episodes of all tasks."""
    last_update: UpdateStats | None
    """Its policy_lag is the mean over the last WINDOW_S: batches come in bursts, the first one without a lag."""
    starved_ratio: float | None
    """Share of the last WINDOW_S that the learner waited for rollouts."""
    waited_s: float
    """Total time of these waits since this process started."""
    inference_busy_ratio: float | None
    """Share of the last WINDOW_S that the inference threads worked; None if actors run the model themselves."""
    learner_queue_size: int
    learner_queue_capacity: int
    rows_per_inference: float | None
    """Mean over the last WINDOW_S."""
    streams: int
    envs: int
    actor_restarts: int
    env_failures: int | None
    """Environments that failed during an episode since this process started. These episodes are in no mean."""
    steps_in_flight: int | None
    """Steps sampled by this process, neither delivered nor dropped; only with env-servers, like the two below."""
    steps_dropped_partial: int | None
    """Steps dropped by this process, as the end of a stream left their unrolls too short."""
    steps_dropped_stale: int | None
    """Steps dropped by this process, as their unrolls were older than max_policy_lag."""
    checkpoint_age_s: float | None
    checkpoint_time_s: float | None
    """Time of the last saved checkpoint, in seconds since 1970."""
    checkpoint_bytes: int | None
    checkpoint_failures: int
    node_notices: int
    """Notices for the nodes of all learners since this process started; each was followed by a checkpoint."""
    tasks: Mapping[str, TaskStats] = field(default_factory=dict)
    """Statistics by task, in the order of task_shares; empty without tasks."""
    infos: Mapping[str, float | None] = field(default_factory=dict)
    """Mean over the newest RECENT_EPISODES episodes of each number in their info, by the keys of log_info."""
    curriculum: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the curriculum, by name; empty without one."""
    league: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the league, by name; empty without opponents."""
    ranks: Sequence[RankStats] = ()
    """Last reported statistics of several learners, in the order of their ranks; empty for a single learner."""

    @property
    def failed_share(self) -> float:
        """Share of the episodes since this process started that were cut short by a failed environment."""
        return (self.env_failures or 0) / max(1, (self.env_failures or 0) + self.process_episodes)

    def columns(self) -> dict[str, Any]:
        """Returns the values for a row of logs.csv by name."""
        return {name: value for name, value in self.flat().items() if name in COLUMNS or "/" in name}

    def own_loss_parts(self) -> dict[tuple[str], float]:
        """Returns the parts of a user's loss in the last update, by labels of a metric."""
        parts = {} if self.last_update is None else self.last_update.parts
        return {(name,): value for name, value in parts.items() if name not in IMPALA_PARTS}

    def labelled_infos(self) -> dict[tuple[str], float]:
        """Returns the known means in `infos`, by labels of a metric."""
        return {(key,): mean for key, mean in self.infos.items() if mean is not None}

    def labelled_curriculum(self) -> dict[tuple[str], float]:
        """Returns the numbers of the curriculum, by labels of a metric."""
        return {(name,): number for name, number in self.curriculum.items()}

    def labelled_league(self) -> dict[tuple[str], float]:
        """Returns the numbers of the league, by labels of a metric."""
        return {(name,): number for name, number in self.league.items()}

    def flat(self) -> dict[str, Any]:
        """Returns every value by name, always in the same order.

        Includes the last update, loss/NAME for each part of a user's loss, info/KEY for each key of log_info,
        curriculum/NAME and league/NAME for each number of a curriculum and a league, step/TASK and
        mean_episode_return/TASK of each task, and streams/rank0 and so on of several learners.
        """
        values = asdict(self)
        update = values.pop("last_update") or {}
        del values["tasks"], values["ranks"], values["infos"], values["curriculum"], values["league"]
        for name in ("step", "mean_episode_return"):
            values |= {f"{name}/{task}": getattr(stats, name) for task, stats in self.tasks.items()}
        for name in RankStats._fields:
            values |= {f"{name}/rank{rank}": getattr(stats, name) for rank, stats in enumerate(self.ranks)}
        parts = update.pop("parts", {})
        values["total_loss"] = update.get("total_loss")
        values |= {name: parts.get(name) for name in IMPALA_PARTS}
        values |= {f"{LOSS_PART}{name}": value for name, value in parts.items() if name not in IMPALA_PARTS}
        values |= {f"{INFO}{key}": mean for key, mean in self.infos.items()}
        values |= {f"{CURRICULUM}{name}": number for name, number in self.curriculum.items()}
        values |= {f"{LEAGUE}{name}": number for name, number in self.league.items()}
        return values | {field.name: update.get(field.name) for field in fields(UpdateStats) if field.name != "parts"}
