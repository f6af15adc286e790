"""Environments that fail on purpose; importing this module registers them."""

import math
import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Well(gymnasium.Env[Observation, np.int64]):
    """Behaves: episodes of 3 decisions, reward 1 each."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._decisions = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._decisions = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._decisions += 1
        return np.full(2, 0.5, np.float32), self.reward(), self._decisions == 3, False, {}

    def reward(self) -> float:
        return 1.0


class RaisesInStep(Well):
    def reward(self) -> float:
        raise RuntimeError("the emulator is on fire")


class RewardIsNotFinite(Well):
    def reward(self) -> float:
        return math.nan


class HangsInReset(Well):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        while True:
            time.sleep(600)


class CannotBeMade(Well):
    def __init__(self) -> None:
        raise OSError("no licence file")


for _env in (Well, RaisesInStep, RewardIsNotFinite, HangsInReset, CannotBeMade):
    gymnasium.register(f"{_env.__name__}-v0", entry_point=f"{__name__}:{_env.__name__}", disable_env_checker=True)
