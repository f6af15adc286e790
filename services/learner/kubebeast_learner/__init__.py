"""KubeBeast's learner as a library: the settings of a training, and the actors that rollouts come from.

`kubebeast_learner.models` has the networks, `kubebeast_learner.algorithm` V-trace, the losses and the update;
examples/impala_loop.py joins them. What these three packages export is what other code may rely on.

Importing this package loads nothing else: a name is imported when it is first used. MonoActors needs the extra `envs`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kubebeast_common.spec.env_spec import EnvSpec

if TYPE_CHECKING:
    from kubebeast_learner.actors.base import Actors, ActorsError
    from kubebeast_learner.actors.mono.actors import MonoActors
    from kubebeast_learner.config import (
        ActorProcessesConfig,
        ConfigError,
        LossConfig,
        ModelConfig,
        MonoConfig,
        OptimizerConfig,
        ReplayConfig,
        RolloutConfig,
        RunConfig,
    )
else:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version("kubebeast-learner")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'config')}"), name)


__all__ = [
    "ActorProcessesConfig",
    "Actors",
    "ActorsError",
    "ConfigError",
    "EnvSpec",
    "LossConfig",
    "ModelConfig",
    "MonoActors",
    "MonoConfig",
    "OptimizerConfig",
    "ReplayConfig",
    "RolloutConfig",
    "RunConfig",
]

__version__: str

_ELSEWHERE = {
    "Actors": "actors.base",
    "ActorsError": "actors.base",
    "MonoActors": "actors.mono.actors",
}
"""Modules of the names that are not of `config`."""
