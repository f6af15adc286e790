"""One gymnasium environment by its id, in the wrappers of the user."""

import inspect
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import gymnasium

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.user_code import (
    UserImportError,
    describe,
    import_user_module,
    import_user_object,
    raise_if_interrupt,
    shadow_hint,
)
from kubebeast_envserver.envs.libraries import dm_environment, older_gym
from kubebeast_envserver.envs.libraries.minigrid_env import with_true_bounds
from kubebeast_envserver.envs.registration import missing_library, registered_id
from kubebeast_envserver.rows.rows import EnvironmentFailure

Env = gymnasium.Env[Any, Any]
EnvT = TypeVar("EnvT")


def make_env(env_id: str, env_kwargs: dict[str, Any], wrappers: Sequence[Wrapper] = ()) -> Env:
    """Makes one environment of "Id" or "module:Id" in its wrappers, the first one innermost.

    Raises ValueError for an unregistered id or an invalid wrapper, and EnvironmentFailure if the code of the
    environment or of a wrapper raises.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_user_module(module)
        env = _made(module, name, env_kwargs)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(
            f"env = {env_id!r}: {error}{shadow_hint(module, error) or hint_at(module, name, error)}"
        ) from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
    return with_true_bounds(wrapped(env, wrappers, gymnasium.Env))


def hint_at(module: str, name: str, error: Exception) -> str:
    """Returns advice on an id that cannot be made, to append to the error; empty if there is none."""
    if hint := missing_library(name):
        return hint
    made = getattr(sys.modules.get(module), name, None)
    if isinstance(error, gymnasium.error.UnregisteredEnv) and isinstance(made, type):
        return (
            f". {module} has a class of this name: register it there, gymnasium.register({f'{name}-v0'!r}, "
            f"entry_point={f'{module}:{name}'!r}), and name {module}:{name}-v0"
        )
    return ""


def wrapped(env: EnvT, wrappers: Sequence[Wrapper], kind: type[Any]) -> EnvT:
    """Wraps `env`, the first wrapper innermost; each of them must return a `kind`.

    Raises ValueError for an invalid wrapper, and EnvironmentFailure if the code of one raises.
    """
    for wrapper in wrappers:
        env = _wrapped(env, wrapper, kind)
    return env


def kind_without_options(env: Env) -> str:
    """Returns the kind of an environment with resets that take no options, in the plural; "" if they do."""
    plain = env.unwrapped
    if isinstance(plain, dm_environment.DmEnvironment):
        return "environments of dm_env"
    if type(plain).__name__ == "GymV21CompatibilityV0":
        return "environments of gym before 0.26"
    try:
        parameters = inspect.signature(plain.reset).parameters
    except (TypeError, ValueError):  # C code without a signature
        return ""
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return "" if takes_any or "options" in parameters else f"{type(plain).__name__} environments"


def _made(module: str, name: str, env_kwargs: dict[str, Any]) -> Env:
    if name.startswith(older_gym.PREFIX):
        return older_gym.make(name, env_kwargs)
    if name.startswith(dm_environment.PREFIX):
        return dm_environment.make(module, name, env_kwargs)
    return with_true_bounds(gymnasium.make(registered_id(name), **env_kwargs))


def _wrapped(env: EnvT, wrapper: Wrapper, kind: type[Any]) -> EnvT:
    where = f"wrappers = {str(wrapper)!r}"
    try:
        wrap = import_user_object(wrapper.name)
    except UserImportError as error:
        raise ValueError(f"{where}: {error}") from error
    if not callable(wrap):
        raise ValueError(f"{where}: is {wrap!r}, not something that takes an environment and returns one")
    try:
        result: EnvT = wrap(env, **wrapper.kwargs)
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{where} raised {describe(error)}") from error
    if not isinstance(result, kind):
        library = kind.__module__.partition(".")[0]
        raise ValueError(f"{where}: returned {result!r}, which is no {library}.{kind.__name__}")
    return result
