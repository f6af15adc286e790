"""Hosts gymnasium and Atari environments and streams them to a KubeBeast learner (kubebeast_protos.v1).

As a library, the package makes vectors of environments (`make_vector_env`) that yield the rows of the protocol. The
exported names are its public interface. kubebeast_envserver.catch:Catch-v0 is an environment for first tests.

Importing the package loads nothing else: a name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubebeast_envserver.envs.action_mask_from_info import ActionMaskFromInfo
    from kubebeast_envserver.envs.factory import (
        EnvironmentFailure,
        FaultPolicy,
        HostedEnv,
        Leaf,
        Preset,
        RenderedEnv,
        StepRows,
        Wrapper,
        make_rendered_env,
        make_vector_env,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "action_mask_from_info" if name == "ActionMaskFromInfo" else "factory"
        return getattr(import_module(f"{__name__}.envs.{module}"), name)


__all__ = [
    "ActionMaskFromInfo",
    "EnvironmentFailure",
    "FaultPolicy",
    "HostedEnv",
    "Leaf",
    "Preset",
    "RenderedEnv",
    "StepRows",
    "Wrapper",
    "make_rendered_env",
    "make_vector_env",
]
