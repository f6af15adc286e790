"""Environments of gym 0.21 to 0.26, the predecessor of gymnasium, as gymnasium environments through shimmy."""

import copy
from typing import Any

import gymnasium
from gymnasium import spaces

PREFIX = "gym/"
"""Prefix of ids: "gym/CartPole-v1" stands for gym.make("CartPole-v1")."""


def make(env_id: str, env_kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Makes one environment of an id with the PREFIX. `env_kwargs` are arguments of gym.make.

    Raises gymnasium.error.Error for an id that is not registered with gym, or if gym or shimmy is not installed.
    """
    try:
        import gym
        from shimmy.openai_gym_compatibility import GymV21CompatibilityV0, GymV26CompatibilityV0
    except ImportError as error:
        missing = f"{error}: {PREFIX} stands for gym, pip install 'kubebeast-envserver[legacy]'"
        raise gymnasium.error.DependencyNotInstalled(missing) from error
    name = env_id.removeprefix(PREFIX)
    has_five_values = tuple(map(int, gym.__version__.split(".")[:2])) >= (0, 26)
    try:
        if has_five_values:
            # gym's checker would complain about NumPy; GuardedEnv checks the results of environments.
            env = GymV26CompatibilityV0(env=gym.make(name, **{"disable_env_checker": True, **env_kwargs}))
        else:
            env = GymV21CompatibilityV0(env=_make_before_26(gym.spec(name), **env_kwargs))
    except gym.error.Error as error:
        raise gymnasium.error.Error(f"gym {gym.__version__}: {error}") from error
    restore_starts(env.observation_space, env.gym_env.observation_space)
    restore_starts(env.action_space, env.gym_env.action_space)
    adapted: gymnasium.Env[Any, Any] = env
    return adapted


def restore_starts(space: spaces.Space[Any], original: Any) -> None:
    """Restores the first category of each Discrete in gym's space; in its copy `space`, shimmy 2.0 lets it be 0."""
    match space:
        case spaces.Discrete():
            space.start = space.start + getattr(original, "start", 0)
        case spaces.Dict():
            for key, entry in space.items():
                restore_starts(entry, original[key])
        case spaces.Tuple():
            for index, entry in enumerate(space):
                restore_starts(entry, original[index])


def _make_before_26(spec: Any, max_episode_steps: int | None = None, **env_kwargs: Any) -> Any:
    """Makes an environment like gym.make of 0.26, with max_episode_steps in place of the registered one."""
    spec = copy.copy(spec)
    if max_episode_steps is not None:
        spec.max_episode_steps = max_episode_steps
    return spec.make(**env_kwargs)
