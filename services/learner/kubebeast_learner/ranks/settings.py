"""Settings that all ranks must have alike, compared before they train."""

from kubebeast_learner.config import (
    ConfigError,
    LossConfig,
    ModelConfig,
    OptimizerConfig,
    TasksConfig,
    TrainingConfig,
)
from kubebeast_learner.config.resuming import changes
from kubebeast_learner.config.sources import as_settings, setting_types
from kubebeast_learner.ranks.group import gather

WHAT_IS_LEARNT = (TasksConfig, ModelConfig, LossConfig, OptimizerConfig)
COMMON = {name for section in WHAT_IS_LEARNT for name in setting_types(section)}
COMMON |= {"xpid", "total_steps", "seed", "dial"}
"""Those that one update of all, one run, or a fleet that is dealt out goes by. Sizes of batches and where a rank
computes are its own."""


def require_alike(config: TrainingConfig) -> None:
    """ConfigError, the same on all ranks, which call this together, names every setting of COMMON that differs from
    the first rank's.
    """
    first, *others = gather({name: value for name, value in as_settings(config).items() if name in COMMON})
    found = [
        f"{name} = {theirs!r} on rank {rank} and {expected!r} on rank 0"
        for rank, settings in enumerate(others, start=1)
        for name, (expected, theirs) in changes(settings, first).items()
    ]
    if found:
        raise ConfigError(f"{', '.join(found)}: learners of one model must agree on it")
