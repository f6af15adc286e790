"""An environment of any spaces, which draws its observations and refuses an action outside its space."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "vector": spaces.Box(-1.0, 1.0, (3,)),
    "image": spaces.Box(0, 255, (36, 36), np.uint8),
    "category": spaces.Discrete(5, start=2),
    "bits": spaces.MultiBinary(4),
    "tuple": spaces.Tuple([spaces.Box(0, 255, (2, 2), np.uint8), spaces.MultiDiscrete([2, 3])]),
}
ACTIONS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3, start=-1),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "multi-binary": spaces.MultiBinary(3),
    "bounded box": spaces.Box(np.array([0.0, -2.0], np.float32), np.array([1.0, 2.0], np.float32)),
    "box": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    "dict": spaces.Dict(
        {"steer": spaces.Box(-1.0, 1.0, (1,)), "gear": spaces.Discrete(3), "lights": spaces.MultiBinary(2)}
    ),
    "tuple": spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 255, (2,), np.uint8)]),
}
LENGTH = 7


class AnySpace(gymnasium.Env[Any, Any]):
    def __init__(self, observation: str, action: str) -> None:
        self.observation_space = OBSERVATIONS[observation]
        self.action_space = ACTIONS[action]
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._num_steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is not in {self.action_space}")
        self._num_steps += 1
        return self.observation_space.sample(), 1.0, self._num_steps == LENGTH, False, {}


gymnasium.register("AnySpace-v0", entry_point=f"{__name__}:AnySpace", disable_env_checker=True)
