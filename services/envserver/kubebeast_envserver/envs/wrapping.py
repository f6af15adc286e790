"""One gymnasium environment by its id, with the wrappers that a user has put around it."""

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, TypeVar

import gymnasium

from kubebeast_common.env_config import Wrapper
from kubebeast_common.user_code import (
    UserImportError,
    describe,
    import_user_module,
    import_user_object,
    raise_if_interrupt,
)
from kubebeast_envserver.envs.libraries import dm_environment, older_gym
from kubebeast_envserver.rows.rows import EnvironmentFailure

Env = gymnasium.Env[Any, Any]
EnvT = TypeVar("EnvT")


def make_env(env_id: str, env_kwargs: dict[str, Any], wrappers: Sequence[Wrapper] = ()) -> Env:
    """One environment of "Id" or "module:Id" in its wrappers, the first one innermost.

    Raises ValueError for an id nobody registered and for what is no wrapper, EnvironmentFailure where the code of the
    environment or of a wrapper raises.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_user_module(module)
        env = _made(module, name, env_kwargs)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
    return wrapped(env, wrappers, gymnasium.Env)


def wrapped(env: EnvT, wrappers: Sequence[Wrapper], kind: type[Any]) -> EnvT:
    """env in its wrappers, the first one innermost, each of which must return a `kind`.

    Raises ValueError for what is no wrapper, EnvironmentFailure where the code of one raises.
    """
    for wrapper in wrappers:
        env = _wrapped(env, wrapper, kind)
    return env


def _made(module: str, name: str, env_kwargs: dict[str, Any]) -> Env:
    if name.startswith(older_gym.PREFIX):
        return older_gym.make(name, env_kwargs)
    if name.startswith(dm_environment.PREFIX):
        return dm_environment.make(module, name, env_kwargs)
    register_namespace(name)
    return gymnasium.make(name, **env_kwargs)


def register_namespace(name: str) -> None:
    """Registers the ids of "Namespace/Id" where a package does so in an entry point, which gymnasium 1.0 calls no more.

    Raises what the package raises.
    """
    namespace, slash, _ = name.partition("/")
    if slash and all(spec.namespace != namespace for spec in gymnasium.registry.values()):
        for entry_point in entry_points(group="gymnasium.envs", name=namespace):
            entry_point.load()()


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
