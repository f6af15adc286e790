"""Several learners that train one model: how they wait for each other."""

from dataclasses import dataclass

from kubebeast_learner.config.checks import require, require_positive


@dataclass(frozen=True, kw_only=True, slots=True)
class RanksConfig:
    """The learners that torchrun starts, where it starts several."""

    share_timeout_s: float = 5.0
    """Longest that the other learners wait for one that has no batch, in seconds; then they train without its share,
    until it has one again."""
    rank_timeout_s: float = 300.0
    """Longest that learners wait for one that does not answer, in seconds; then all end, for torchrun to start them
    again. It has to be longer than it takes to save a checkpoint."""

    def __post_init__(self) -> None:
        require_positive(self, "share_timeout_s", "rank_timeout_s")
        reason = f"must be less than rank_timeout_s ({self.rank_timeout_s}): by then the others have given up"
        require(self.share_timeout_s < self.rank_timeout_s, "share_timeout_s", self.share_timeout_s, reason)
