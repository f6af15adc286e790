"""An environment with numbers in its info, alone, in a vector and with two agents."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

LENGTH = 4
LARGE_RETURN = 2.0**24 + 1.0
"""The smallest positive integer that is no float32."""
SPACES = spaces.Box(0.0, 1.0, (2,), np.float32), spaces.Discrete(2)


def info_after(step: int, game: int) -> dict[str, Any]:
    """Returns the info of a step of the n-th game: every second one is a success, and only a success has a time."""
    success = game % 2 == 1
    info = {
        "success": success,
        "step": np.int64(step),
        "found": {"wood": np.float32(0.5), "stone": np.array([2])},
        "a/b": 7,
        "bad": float("nan"),
        "text": "3",
        "many": np.zeros(2),
    }
    return info | ({"time": 1.5} if success else {})


class Informed(gymnasium.Env[Any, Any]):
    observation_space, action_space = SPACES

    def __init__(self) -> None:
        self._game = -1
        self._step = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._game, self._step = self._game + 1, 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The return is LARGE_RETURN, and each reward a float32."""
        self._step += 1
        reward = LARGE_RETURN - LENGTH + 1.0 if self._step == 1 else 1.0
        return np.zeros(2, np.float32), reward, self._step == LENGTH, False, info_after(self._step, self._game)


class InformedPair(ParallelEnv[str, Any, Any]):
    """Agent a ends before agent b."""

    metadata = {"name": "informed"}  # noqa: RUF012 - as PettingZoo declares it
    possible_agents = ["a", "b"]  # noqa: RUF012 - as PettingZoo declares it

    def __init__(self) -> None:
        self._game = -1
        self._step = 0

    def observation_space(self, agent: str) -> Any:
        return SPACES[0]

    def action_space(self, agent: str) -> Any:
        return SPACES[1]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        self._game, self._step = self._game + 1, 0
        return {agent: np.zeros(2, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        self._step += 1
        over = {agent: self._step == LENGTH - (agent == "a") for agent in self.agents}
        observations = {agent: np.zeros(2, np.float32) for agent in self.agents}
        infos = {agent: info_after(self._step, self._game) for agent in self.agents}
        result = observations, dict.fromkeys(over, 1.0), over, dict.fromkeys(over, False), infos
        self.agents = [agent for agent in self.agents if not over[agent]]
        return result


gymnasium.register("Informed-v0", entry_point=f"{__name__}:Informed")
