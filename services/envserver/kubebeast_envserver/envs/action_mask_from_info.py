"""For environments that tell the action mask in `info`, as Taxi-v4 does."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from kubebeast_envserver.rows.action_mask import PATH


class ActionMaskFromInfo(gymnasium.Wrapper[dict[str, Any], Any, Any, Any]):
    """Observations are {"observation": ..., "action_mask": info["action_mask"]}; the action space is Discrete.

    An info without the key counts as a failure of the environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Raises ValueError where the action space is another."""
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Discrete):
            raise ValueError(f"ActionMaskFromInfo needs a Discrete action space, not {env.action_space}")
        mask = spaces.MultiBinary(int(env.action_space.n))
        self.observation_space = spaces.Dict({"observation": env.observation_space, PATH: mask})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(observation, info), reward, terminated, truncated, info

    def _with_mask(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        if PATH not in info:
            raise ValueError(f"info has no {PATH!r}, only {', '.join(map(repr, info)) or 'nothing'}")
        return {"observation": observation, PATH: np.asarray(info[PATH], np.int8)}
