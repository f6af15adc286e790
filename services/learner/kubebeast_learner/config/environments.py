"""Settings of the environments that a command creates, and of `kubebeast check-env`."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

from kubebeast_common.spec.limits import DEFAULT_MESSAGE_MIB
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
    """Construction of environments, apart from their id."""

    preset: Literal["auto", "none", "atari-v4", "atari-v5"] = "auto"
    """Preprocessing: atari-v4 is that of TorchBeast, atari-v5 that of Machado et al. 2018; auto depends on the id."""
    env_kwargs: JsonObject = "{}"
    """JSON object: arguments of the environment, or overrides of the preset such as '{"frameskip": 2}'."""
    wrappers: str = "[]"
    """Wrappers of each environment, the innermost first: module:Wrapper, separated by commas, or a JSON list, in which
    '{"module:Wrapper": {...}}' has arguments."""
    time_limit: int = 0
    """Steps after which an episode is truncated, instead of the limit that the environment is registered with; 0 keeps
    that limit. Wrappers are applied outside it."""

    def __post_init__(self) -> None:
        parse_env_kwargs(self.env_kwargs)
        parse_wrappers(self.wrappers)
        require_at_least(0, self, "time_limit")

    @property
    def making(self) -> dict[str, Any]:
        """Arguments for the functions of the env-server's package that make environments."""
        return {
            "preset": self.preset,
            "env_kwargs": parse_env_kwargs(self.env_kwargs),
            "wrappers": parse_wrappers(self.wrappers),
            "time_limit": self.time_limit,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckEnvConfig(MakingConfig):
    """Settings of `kubebeast check-env`."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """Environment: a gymnasium id or module:Id."""
    steps: int = 1000
    """Number of steps, with random actions."""
    episodes: int = 0
    """Stop after this many episodes, if that is before the last step; 0 sets no such limit."""
    seed: int = 1
    """Seed of the environment and of the actions."""
    json: bool = False
    """Print one JSON line instead of the tables."""
    max_message_mib: int = DEFAULT_MESSAGE_MIB
    """Largest message that the learner accepts, in MiB; a row that is larger fails the check."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        MakingConfig.__post_init__(self)
        require(self.env != "", "env", self.env, "must be named")
        require_at_least(1, self, "steps", "max_message_mib")
        require_at_least(0, self, "episodes")
        require_seed(self.seed)
