"""The environments of the tasks, for the programs of other systems."""

from typing import Any

import gymnasium
import numpy as np


class Cells(gymnasium.ObservationWrapper[Any, Any, Any]):
    """MinAtar's cells, bool [H, W, C], as numbers [C, H, W]."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        height, width, channels = env.observation_space.shape or ()
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (channels, height, width), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        cells: np.ndarray = np.moveaxis(observation, -1, 0).astype(np.float32)
        return cells


def make_env(env: str, inputs: str) -> gymnasium.Env[Any, Any]:
    if env.startswith("MiniGrid"):
        import minigrid  # noqa: F401 # registers the environments
        from minigrid.wrappers import ImgObsWrapper

        return ImgObsWrapper(gymnasium.make(env))  # type: ignore[no-any-return] # only in the system's venv
    if env.startswith("MinAtar"):
        from minatar.gym import register_envs

        register_envs()
    made = gymnasium.make(env)
    if inputs == "cells":
        return Cells(made)
    return gymnasium.wrappers.FlattenObservation(made) if inputs == "flattened" else made
