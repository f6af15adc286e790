"""Environments of MiniGrid. Their images hold small numbers of objects, colors and states in bytes.

https://minigrid.farama.org/environments/minigrid/: OBJECT_TO_IDX, COLOR_TO_IDX, and states, or directions of an agent.
The bounds of their space are those of a byte.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

_LARGEST = (10, 5, 3)
"""Largest values of the three channels."""
_LAYERS = {"FullyObsWrapper", "ImgObsWrapper", "ViewSizeWrapper", "ReseedWrapper", "ActionBonus", "PositionBonus"}
"""Wrappers of MiniGrid that do not change these numbers."""


class TrueBounds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same environment, with the real bounds of its image in its space."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        if isinstance(space, spaces.Dict):
            self.observation_space = spaces.Dict({**space.spaces, "image": _bounded(space["image"])})
        else:
            self.observation_space = _bounded(space)


def with_true_bounds(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Puts TrueBounds around an environment of MiniGrid, if the wrappers around it do not change its image."""
    if not any(kind.__module__ == "minigrid.minigrid_env" for kind in type(env.unwrapped).__mro__):
        return env
    if not all(_keeps_image(layer) for layer in _layers(env)):
        return env
    space = env.observation_space
    image = space.spaces.get("image") if isinstance(space, spaces.Dict) else space
    is_symbolic = isinstance(image, spaces.Box) and image.dtype == np.uint8 and image.shape[2:] == (len(_LARGEST),)
    return TrueBounds(env) if is_symbolic else env


def with_true_bounds_of_each(envs: VectorEnv[Any, Any, Any]) -> VectorEnv[Any, Any, Any]:
    """Sets the real bounds in the spaces of a vector whose environments are in this process (SyncVectorEnv)."""
    first = next(iter(getattr(envs, "envs", ())), None)
    if isinstance(first, gymnasium.Env) and (bounded := with_true_bounds(first)) is not first:
        envs.single_observation_space = bounded.observation_space
        envs.observation_space = batch_space(bounded.observation_space, envs.num_envs)
    return envs


def _layers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


def _keeps_image(layer: object) -> bool:
    kind = type(layer)
    if kind.__module__.startswith("minigrid."):
        return kind.__name__ in _LAYERS
    return kind is TrueBounds or kind.__module__ == "gymnasium.wrappers.common"


def _bounded(image: Any) -> spaces.Box:
    return spaces.Box(0, np.broadcast_to(np.array(_LARGEST, np.uint8), image.shape), image.shape, np.uint8)
