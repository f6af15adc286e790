"""Frozen dataclasses with the settings of every command: each field has its unit and, if it is optional, a default.

Names are those of TorchBeast for options that both have. Validation errors contain the field, the value and the reason.
"""

from kubebeast_learner.config.checks import ConfigError
from kubebeast_learner.config.environments import CheckEnvConfig
from kubebeast_learner.config.learning import LossConfig, ModelConfig, OptimizerConfig, ReplayConfig
from kubebeast_learner.config.play import (
    CheckpointConfig,
    EvalConfig,
    ExportConfig,
    PlayConfig,
    RenderConfig,
)
from kubebeast_learner.config.pool import PoolConfig
from kubebeast_learner.config.ranks import RanksConfig
from kubebeast_learner.config.running import (
    ActorProcessesConfig,
    FleetTrainingConfig,
    LearnerConfig,
    LocalEnvsConfig,
    LocalFleetConfig,
    MonoConfig,
    RemoteFleetConfig,
    RolloutConfig,
    RunConfig,
    TrainConfig,
    TrainingConfig,
)
from kubebeast_learner.config.tasks import TasksConfig
from kubebeast_learner.config.tuning import TuneConfig, TuningConfig

__all__ = [
    "ActorProcessesConfig",
    "CheckEnvConfig",
    "CheckpointConfig",
    "ConfigError",
    "EvalConfig",
    "ExportConfig",
    "FleetTrainingConfig",
    "LearnerConfig",
    "LocalEnvsConfig",
    "LocalFleetConfig",
    "LossConfig",
    "ModelConfig",
    "MonoConfig",
    "OptimizerConfig",
    "PlayConfig",
    "PoolConfig",
    "RanksConfig",
    "RemoteFleetConfig",
    "RenderConfig",
    "ReplayConfig",
    "RolloutConfig",
    "RunConfig",
    "TasksConfig",
    "TrainConfig",
    "TrainingConfig",
    "TuneConfig",
    "TuningConfig",
]
