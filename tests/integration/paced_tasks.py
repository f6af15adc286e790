"""Two tasks of equal spaces: one takes ten times as long for a step, and returns a hundred times as much."""

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

FAST, SLOW = "tests.integration.paced_tasks:Fast-v0", "tests.integration.paced_tasks:Slow-v0"
LENGTH = 9
FAST_RETURN, SLOW_RETURN = float(LENGTH), 100.0 * LENGTH


class Paced(gymnasium.Env[Any, Any]):
    """Episodes of LENGTH steps, each of which takes step_s seconds and is rewarded by `reward`."""

    observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, step_s: float, reward: float) -> None:
        self._step_s = step_s
        self._reward = reward
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._num_steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(self._step_s)
        self._num_steps += 1
        return self._observation(), self._reward, self._num_steps == LENGTH, False, {}

    def _observation(self) -> Any:
        return self.np_random.random(3, dtype=np.float32)


gymnasium.register("Fast-v0", lambda **_: Paced(step_s=0.0005, reward=1.0))
gymnasium.register("Slow-v0", lambda **_: Paced(step_s=0.005, reward=100.0))
