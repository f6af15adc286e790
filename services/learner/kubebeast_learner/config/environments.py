"""How the environments that a command makes are made, and what `kubebeast check-env` needs."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

from kubebeast_learner.config.checks import (
    JsonObject,
    parse_env_kwargs,
    parse_wrappers,
    require,
    require_at_least,
    require_seed,
)
from kubebeast_learner.config.learning import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class MakingConfig:
    """How environments are made, beside their id."""

    preset: Literal["auto", "none", "atari-v4", "atari-v5"] = "auto"
    """Preprocessing: atari-v4 is TorchBeast's, atari-v5 that of Machado et al. 2018; auto goes by the id."""
    env_kwargs: JsonObject = "{}"
    """JSON object: arguments of the environment, or overrides of the preset such as '{"frameskip": 2}'."""
    wrappers: str = "[]"
    """Put around each environment, in this order: module:Wrapper, separated by commas, or a JSON list in which
    '{"module:Wrapper": {...}}' has arguments."""
    time_limit: int = 0
    """Steps after which an episode is truncated, in place of as many as the environment is registered with; 0 leaves
    those. Wrappers are around it."""

    def __post_init__(self) -> None:
        parse_env_kwargs(self.env_kwargs)
        parse_wrappers(self.wrappers)
        require_at_least(0, self, "time_limit")

    @property
    def making(self) -> dict[str, Any]:
        """As arguments of the functions of the env-server's package."""
        return {
            "preset": self.preset,
            "env_kwargs": parse_env_kwargs(self.env_kwargs),
            "wrappers": parse_wrappers(self.wrappers),
            "time_limit": self.time_limit,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckEnvConfig(MakingConfig):
    """Everything `kubebeast check-env` needs."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """Environment: a gymnasium id or module:Id."""
    steps: int = 1000
    """Steps to make, with random actions."""
    episodes: int = 0
    """End after so many episodes; 0 goes by the steps alone."""
    seed: int = 1
    """Seed of the environment and of the actions."""
    json: bool = False
    """Print one JSON line instead of the tables."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        MakingConfig.__post_init__(self)
        require(self.env != "", "env", self.env, "must be named")
        require_at_least(1, self, "steps")
        require_at_least(0, self, "episodes")
        require_seed(self.seed)
