"""Settings of `kubebeast tune`, in addition to those of its training."""

from dataclasses import dataclass, field
from pathlib import Path

from kubebeast_learner.config.checks import require, require_positive
from kubebeast_learner.config.running import TrainConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class TuningConfig:
    """Duration of the measurements, and destination of the settings."""

    seconds: float = 60.0
    """Total time of all measurements, in seconds; startup takes some more."""
    out: Path | None = None
    """YAML file for the settings, suitable for --config of kubebeast train; None is standard output."""

    def __post_init__(self) -> None:
        require_positive(self, "seconds")
        if self.out is not None:
            folder = self.out.expanduser().parent
            require(folder.is_dir(), "out", str(self.out), "its folder is not there")


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneConfig(TrainConfig):
    """Settings of `kubebeast tune`: those of kubebeast train, and its own."""

    tuning: TuningConfig = field(default_factory=TuningConfig)

    def __post_init__(self) -> None:
        TrainConfig.__post_init__(self)
        require(not self.tasks.task_shares, "task_shares", self.tasks.task_shares, "kubebeast tune measures one task")
        reason = "kubebeast tune measures one learner: give each its share of the machine"
        require(self.fleet.num_learners == 1, "num_learners", self.fleet.num_learners, reason)
