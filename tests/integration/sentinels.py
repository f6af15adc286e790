"""An environment that sometimes sends finite numbers that no model can compute with."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Sentinel(gymnasium.Env[Any, Any]):
    """A choice of two by the sign of a number, and a number in bounds beside it.

    Every observation of number `every` holds `value`, and its reward is `reward`.
    """

    def __init__(self, value: float = 0.5, reward: float = 1.0, every: int = 50) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = spaces.Tuple([spaces.Discrete(2), spaces.Box(-1.0, 1.0, (1,), np.float32)])
        self._value, self._reward, self._every = value, reward, every
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._length = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert np.isfinite(action[1]).all()
        is_right = (self._x > 0) == bool(action[0])
        self._length += 1
        observation = self._observation()
        reward = self._reward if self._num_steps % self._every == 0 else 1.0
        return observation, reward * is_right, False, self._length >= 20, {}

    def _observation(self) -> Any:
        self._num_steps += 1
        self._x = float(self.np_random.choice([-1.0, 1.0]))
        last = self._value if self._num_steps % self._every == 0 else 0.5
        return np.array([self._x, -self._x, last], np.float32)


gymnasium.register("Sentinel-v0", entry_point="tests.integration.sentinels:Sentinel")
