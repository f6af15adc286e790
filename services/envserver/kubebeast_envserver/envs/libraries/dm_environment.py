"""Environments of dm_env as gymnasium environments, with the spaces and flags of shimmy's conversion."""

import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from kubebeast_common.user_code import import_user_object

PREFIX = "dm_env/"
"""Prefix of ids: "my_envs:dm_env/Maze" stands for my_envs.Maze(), a dm_env.Environment."""


def make(module: str, name: str, env_kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Makes one environment of "module:dm_env/Name". `env_kwargs` are arguments of Name, and max_episode_steps.

    Raises gymnasium.error.Error without a module, or if dm_env or shimmy is not installed, and UserImportError for a
    name that the module does not have.
    """
    attribute = name.removeprefix(PREFIX)
    if not module:
        raise gymnasium.error.UnregisteredEnv(f"no module has {attribute!r}: write module:{name}")
    try:
        from shimmy.utils import dm_env as conversion
    except ImportError as error:
        missing = f"{error}: {PREFIX} stands for dm_env, pip install 'kubebeast[dm-env]'"
        raise gymnasium.error.DependencyNotInstalled(missing) from error
    make_theirs = import_user_object(f"{module}:{attribute}")
    # gymnasium's checker would repeat the checks of GuardedEnv.
    spec = EnvSpec(name, entry_point=partial(DmEnvironment, conversion, make_theirs), disable_env_checker=True)
    return gymnasium.make(spec, **env_kwargs)


class DmEnvironment(gymnasium.Env[Any, Any]):
    """A dm_env.Environment. A last step is truncated if its discount is above 0, and terminated if it is 0.

    dm_env has no way to seed: if Name takes `seed`, a reset with a seed makes another environment.
    """

    def __init__(self, conversion: ModuleType, make: Callable[..., Any], **kwargs: Any) -> None:
        """`conversion` is shimmy.utils.dm_env. Raises the errors of `make`, and NotImplementedError for specs without a
        space.
        """
        self._conversion = conversion
        self._make = partial(make, **kwargs)
        self._takes_seed = "seed" in inspect.signature(make).parameters.keys() - kwargs.keys()
        self._env = self._make()
        self.observation_space = conversion.dm_spec2gym_space(self._env.observation_spec())
        self.action_space = conversion.dm_spec2gym_space(self._env.action_spec())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None and self._takes_seed:
            self._env.close()
            self._env = self._make(seed=seed)
        observation, *_, info = self._conversion.dm_env_step2gym_step(self._env.reset())
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        result: tuple[Any, float, bool, bool, dict[str, Any]] = self._conversion.dm_env_step2gym_step(
            self._env.step(action)
        )
        return result

    def close(self) -> None:
        self._env.close()
