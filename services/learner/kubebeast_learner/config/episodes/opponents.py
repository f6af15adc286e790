"""Settings of self-play: the policies of the agents that do not learn."""

from dataclasses import dataclass
from pathlib import Path

from kubebeast_learner.config.checks import require, require_at_least
from kubebeast_learner.config.episodes.curriculum import CurriculumConfig
from kubebeast_learner.config.episodes.tasks import TasksConfig

CHOICES = ("newest", "uniform", "prioritized")


@dataclass(frozen=True, kw_only=True, slots=True)
class OpponentsConfig:
    """Self-play in environments of several agents: one agent of each learns, and opponents play the others."""

    opponents: str = ""
    """Policy of the other agents in an episode: newest, the policy itself; uniform, also its earlier versions;
    prioritized, rather those that it loses against. Empty: all agents learn."""
    newest_share: float = 0.5
    """Share of the episodes of uniform and prioritized against the newest policy."""
    league_interval: int = 50_000
    """Env-steps after which the policy joins the league of earlier versions."""
    league_size: int = 20
    """Versions in the league; above it, one between two others of similar age leaves. Checkpoints hold their
    weights."""

    def __post_init__(self) -> None:
        is_known = self.opponents in ("", *CHOICES)
        require(is_known, "opponents", self.opponents, f"must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}")
        require(0 <= self.newest_share <= 1, "newest_share", self.newest_share, "must be from 0 to 1")
        require_at_least(1, self, "league_interval")
        require_at_least(2, self, "league_size")

    def require_fit(
        self,
        tasks: TasksConfig,
        curriculum: CurriculumConfig,
        *,
        lag: int | None = None,
        num_learners: int = 1,
        from_recording: Path | None = None,
    ) -> None:
        """Raises ConfigError if there are opponents, and another setting does not allow them."""
        if self.opponents:
            name, value = "opponents", self.opponents
            require(not tasks.task_shares, name, value, "a league is of one task, and task_shares has several")
            require(not curriculum.curriculum, name, value, "environments of several agents take no curriculum")
            require(lag is None, name, value, "the order of its episodes is not repeatable, as a lag requires")
            require(num_learners == 1, name, value, "a league belongs to one learner, and there are several")
            require(from_recording is None, name, value, "from_recording plays no environments")
