"""Environments of gym, which gymnasium came from, as gymnasium environments: gym 0.21 to 0.26, through shimmy."""

import copy
from typing import Any

import gymnasium
from gymnasium import spaces

PREFIX = "gym/"
"""Of their ids: "gym/CartPole-v1" is what gym.make("CartPole-v1") makes."""


def make(env_id: str, env_kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """One environment of an id with the PREFIX; env_kwargs: of gym.make.

    Raises gymnasium.error.Error for an id nobody registered with gym, and where gym or shimmy is not installed.
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
            # Its checker would complain of NumPy; GuardedEnv checks what environments return.
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
    """Where the categories of gym's space begin; shimmy 2.0 lets those of its copy `space` begin at 0."""
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
    """As gym.make of 0.26, whose max_episode_steps takes the place of the registered one."""
    spec = copy.copy(spec)
    if max_episode_steps is not None:
        spec.max_episode_steps = max_episode_steps
    return spec.make(**env_kwargs)
