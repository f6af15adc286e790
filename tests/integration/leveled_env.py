"""An environment whose level is an option of its reset, and whose rows and returns show the level."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

NONE = -1
"""Level of a reset without options."""
EPISODE_STEPS = 3

Observation = NDArray[np.float32]


class Leveled(gymnasium.Env[Observation, np.int64]):
    """Episodes of EPISODE_STEPS steps. Each observation, and the return of the whole episode, is the level.

    refused: level that its reset refuses.
    """

    observation_space = spaces.Box(-1.0, 1000.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, refused: int | None = None) -> None:
        self._refused = refused

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._level = NONE if options is None else options.pop("level")
        if self._level == self._refused:
            raise RuntimeError("no such maze")
        self._step = 0
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._step += 1
        is_over = self._step == EPISODE_STEPS
        return self._observation(), float(self._level) * is_over, is_over, False, {"level": self._level}

    def _observation(self) -> Observation:
        return np.array([self._level], np.float32)


class Levelless(Leveled):
    """The same, with a reset that takes no options."""

    # Without options, as in environments that gymnasium's checker would refuse: that is what tests need.
    def reset(self, *, seed: int | None = None) -> tuple[Observation, dict[str, Any]]:  # type: ignore[override]
        return super().reset(seed=seed)


gymnasium.register("Leveled-v0", entry_point=f"{__name__}:Leveled")
gymnasium.register("Levelless-v0", entry_point=f"{__name__}:Levelless", disable_env_checker=True)
