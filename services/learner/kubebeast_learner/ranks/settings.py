"""Comparison, before training, of settings that must be the same on all ranks."""

from kubebeast_common.cli.settings import as_settings, setting_types
from kubebeast_learner.config import ConfigError, LossConfig, ModelConfig, OptimizerConfig, TasksConfig, TrainingConfig
from kubebeast_learner.config.resuming import changes
from kubebeast_learner.ranks.group import gather

WHAT_IS_LEARNT = (TasksConfig, ModelConfig, LossConfig, OptimizerConfig)
COMMON = {name for section in WHAT_IS_LEARNT for name in setting_types(section)}
COMMON |= {"xpid", "total_steps", "schedule_steps", "seed", "dial"}
"""Settings of the shared updates, of the run, and of a fleet that ranks divide. Batch sizes and devices may differ."""


def require_alike(config: TrainingConfig) -> None:
    """Raises ConfigError, the same on all ranks, for settings of COMMON that differ from the first rank's.

    All ranks must call this together.
    """
    first, *others = gather({name: value for name, value in as_settings(config).items() if name in COMMON})
    found = [
        f"{name} = {theirs!r} on rank {rank} and {expected!r} on rank 0"
        for rank, settings in enumerate(others, start=1)
        for name, (expected, theirs) in changes(settings, first).items()
    ]
    if found:
        raise ConfigError(f"{', '.join(found)}: learners of one model must agree on it")
