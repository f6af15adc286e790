"""Settings of several learners that train one model: their timeouts."""

from dataclasses import dataclass

from kubebeast_learner.config.checks import require, require_positive


@dataclass(frozen=True, kw_only=True, slots=True)
class RanksConfig:
    """Timeouts of the learners that torchrun starts, if there are several."""

    share_timeout_s: float = 5.0
    """Longest time that the other learners wait for one without a batch, in seconds; then they train without its share,
    until it has one again."""
    rank_timeout_s: float = 300.0
    """Longest time that learners wait for one that does not respond, in seconds; then all exit, and torchrun restarts
    them. Must be longer than saving a checkpoint takes."""

    def __post_init__(self) -> None:
        require_positive(self, "share_timeout_s", "rank_timeout_s")
        reason = f"must be less than rank_timeout_s ({self.rank_timeout_s}): by then the others have given up"
        require(self.share_timeout_s < self.rank_timeout_s, "share_timeout_s", self.share_timeout_s, reason)
