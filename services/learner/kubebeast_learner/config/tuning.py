"""What `kubebeast tune` needs beside the settings of the training that it is for."""

from dataclasses import dataclass, field
from pathlib import Path

from kubebeast_learner.config.checks import require, require_positive
from kubebeast_learner.config.running import TrainConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class TuningConfig:
    """How long is measured, and where the settings go."""

    seconds: float = 60.0
    """Time for all measurements together, in seconds; starting what is measured takes some more."""
    out: Path | None = None
    """File for the settings, YAML, as --config of kubebeast train takes it; None is standard output."""

    def __post_init__(self) -> None:
        require_positive(self, "seconds")
        if self.out is not None:
            folder = self.out.expanduser().parent
            require(folder.is_dir(), "out", str(self.out), "its folder is not there")


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneConfig(TrainConfig):
    """Everything `kubebeast tune` needs: the settings of kubebeast train, and its own."""

    tuning: TuningConfig = field(default_factory=TuningConfig)

    def __post_init__(self) -> None:
        TrainConfig.__post_init__(self)
        require(not self.tasks.task_shares, "task_shares", self.tasks.task_shares, "kubebeast tune measures one task")
        reason = "kubebeast tune measures one learner: give each its share of the machine"
        require(self.fleet.num_learners == 1, "num_learners", self.fleet.num_learners, reason)
