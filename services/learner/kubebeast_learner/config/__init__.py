"""What can be configured: one frozen dataclass per room, every field with its unit and its default.

The names are TorchBeast's where it has the same knob. Validation errors name the field, the value and the reason.
"""

from kubebeast_learner.config.checks import ConfigError
from kubebeast_learner.config.learning import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.config.running import LearnerConfig, LocalFleetConfig, RolloutConfig, RunConfig, TrainConfig
from kubebeast_learner.config.tools import EvalConfig

__all__ = [
    "ConfigError",
    "EvalConfig",
    "LearnerConfig",
    "LocalFleetConfig",
    "LossConfig",
    "ModelConfig",
    "OptimizerConfig",
    "RolloutConfig",
    "RunConfig",
    "TrainConfig",
]
