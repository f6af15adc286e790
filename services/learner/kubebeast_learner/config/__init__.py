"""Frozen dataclasses with the settings of every command: each field has its unit and, if it is optional, a default.

Names are those of TorchBeast for options that both have. Validation errors contain the field, the value and the reason.
"""

from kubebeast_learner.config.checks import ConfigError as ConfigError
from kubebeast_learner.config.environments import CheckEnvConfig as CheckEnvConfig
from kubebeast_learner.config.episodes.curriculum import CurriculumConfig as CurriculumConfig
from kubebeast_learner.config.episodes.opponents import OpponentsConfig as OpponentsConfig
from kubebeast_learner.config.episodes.tasks import TasksConfig as TasksConfig
from kubebeast_learner.config.learning import LossConfig as LossConfig
from kubebeast_learner.config.learning import ModelConfig as ModelConfig
from kubebeast_learner.config.learning import OptimizerConfig as OptimizerConfig
from kubebeast_learner.config.learning import PassesConfig as PassesConfig
from kubebeast_learner.config.learning import ReplayConfig as ReplayConfig
from kubebeast_learner.config.learning import RolloutConfig as RolloutConfig
from kubebeast_learner.config.play import CheckpointConfig as CheckpointConfig
from kubebeast_learner.config.play import EvalConfig as EvalConfig
from kubebeast_learner.config.play import ExportConfig as ExportConfig
from kubebeast_learner.config.play import ExportDataConfig as ExportDataConfig
from kubebeast_learner.config.play import PlayConfig as PlayConfig
from kubebeast_learner.config.play import PublishConfig as PublishConfig
from kubebeast_learner.config.play import RenderConfig as RenderConfig
from kubebeast_learner.config.pool import PoolConfig as PoolConfig
from kubebeast_learner.config.ranks import RanksConfig as RanksConfig
from kubebeast_learner.config.running import ActorProcessesConfig as ActorProcessesConfig
from kubebeast_learner.config.running import FleetTrainingConfig as FleetTrainingConfig
from kubebeast_learner.config.running import LearnerConfig as LearnerConfig
from kubebeast_learner.config.running import LocalFleetConfig as LocalFleetConfig
from kubebeast_learner.config.running import MonoConfig as MonoConfig
from kubebeast_learner.config.running import RemoteFleetConfig as RemoteFleetConfig
from kubebeast_learner.config.running import RunConfig as RunConfig
from kubebeast_learner.config.running import TrainConfig as TrainConfig
from kubebeast_learner.config.running import TrainingConfig as TrainingConfig
from kubebeast_learner.config.tuning import TuneConfig as TuneConfig
