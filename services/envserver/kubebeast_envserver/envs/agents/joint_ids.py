"""Ids of environments of several agents, of PettingZoo, and the environments behind them."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.user_code import (
    UserImportError,
    describe,
    import_user_module,
    import_user_object,
    raise_if_interrupt,
)
from kubebeast_envserver.envs.agents.joint_env import JointEnv
from kubebeast_envserver.envs.agents.turn_env import TurnEnv
from kubebeast_envserver.envs.wrapping import wrapped
from kubebeast_envserver.rows.rows import EnvironmentFailure

PREFIX = "pettingzoo/"
"""Prefix of ids. "pettingzoo/butterfly/pistonball_v6" is registered with PettingZoo, like all names with a slash;
"pettingzoo/mpe2.simple_spread_v3" stands for parallel_env or env of that module, "my_envs:pettingzoo/Hunt" for the
class my_envs.Hunt.
"""


def is_joint_id(env_id: str) -> bool:
    """Returns True if "module" or "module:Name" has the PREFIX."""
    return env_id.rpartition(":")[2].startswith(PREFIX)


def module_of_joint_id(name: str) -> str:
    """Returns the module of an id without "module:"; "" if the id is registered with PettingZoo."""
    module = name.removeprefix(PREFIX)
    return "" if "/" in module else module


def make_joint_env(env_id: str, env_kwargs: dict[str, Any], wrappers: Sequence[Wrapper] = ()) -> JointEnv | TurnEnv:
    """Makes one environment of an id with the PREFIX in its wrappers, the first one innermost.

    Raises ValueError for an invalid wrapper, or if the id makes no environment of agents that can share a policy;
    EnvironmentFailure if the code of the environment or of a wrapper raises.
    """
    try:
        from pettingzoo import AECEnv, ParallelEnv
        from pettingzoo.env_registry.exceptions import PettingZooRegistryError
    except ImportError as error:
        raise ValueError(f"env = {env_id!r}: {error}: pip install 'kubebeast[pettingzoo]'") from error
    try:
        env = _factory(env_id)(**env_kwargs)
    except (PettingZooRegistryError, ImportError) as error:
        raise ValueError(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
    if not isinstance(env, ParallelEnv | AECEnv):
        raise ValueError(f"env = {env_id!r}: makes {env!r}, which is no pettingzoo.ParallelEnv or AECEnv")
    try:
        if isinstance(env, ParallelEnv):
            return JointEnv(wrapped(env, wrappers, ParallelEnv))
        return TurnEnv(wrapped(env, wrappers, AECEnv))
    except (ValueError, EnvironmentFailure) as error:
        raise type(error)(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} has no agents: {describe(error)}") from error


def _factory(env_id: str) -> Callable[..., Any]:
    """Returns the constructor of an id, that of a ParallelEnv if there are both.

    Raises ImportError, or an error of pettingzoo for an unregistered id.

    An evaluation makes the environment that an env-server has named, with its arguments. Therefore an id never stands
    for an arbitrary function of a module.
    """
    import pettingzoo

    module, _, name = env_id.rpartition(":")
    name = name.removeprefix(PREFIX)
    if "/" in name:
        if module:
            import_user_module(module)
        return _registered(name)
    if not module:
        return _function(name)
    factory: Callable[..., Any] = import_user_object(f"{module}:{name}")
    if not (isinstance(factory, type) and issubclass(factory, pettingzoo.ParallelEnv | pettingzoo.AECEnv)):
        raise UserImportError(
            f"{module}.{name} is no class of a pettingzoo.ParallelEnv or AECEnv; a function is called parallel_env or "
            f"env, and its id is {PREFIX}{module}"
        )
    return factory


def _registered(name: str) -> Callable[..., Any]:
    import pettingzoo
    from pettingzoo.env_registry.exceptions import PettingZooRegistryError

    try:
        pettingzoo.spec("parallel", name)
    except PettingZooRegistryError:
        pettingzoo.spec("aec", name)
        return partial(pettingzoo.make, "aec", name)
    return partial(pettingzoo.make, "parallel", name)


def _function(module: str) -> Callable[..., Any]:
    """Returns parallel_env of the module, or env if it has none. Raises UserImportError."""
    factory: Callable[..., Any]
    try:
        factory = import_user_object(f"{module}:parallel_env")
    except UserImportError:
        if not hasattr(sys.modules.get(module), "env"):
            raise
        factory = import_user_object(f"{module}:env")
    return factory
