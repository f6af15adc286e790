"""A game with illegal moves."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

NUM_ACTIONS, LENGTH = 4, 10


class LegalMoves(gymnasium.Env[dict[str, Any], Any]):
    """The reward is 1 for the least of the legal actions, 0 for another one; an illegal one raises if `strict`.

    No action is legal once the game is over. Played at random it returns about 5.7 of 10.
    """

    def __init__(self, strict: bool, key: str = "legal") -> None:
        """key: name of the legal actions in an observation."""
        self._strict = strict
        self._key = key
        self.observation_space = spaces.Dict(
            {"hint": spaces.Box(0.0, 1.0, (NUM_ACTIONS,), np.float32), key: spaces.MultiBinary(NUM_ACTIONS)}
        )
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self._legal = np.ones(NUM_ACTIONS, np.int8)
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._num_steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._strict and not self._legal[action]:
            raise ValueError(f"action {action} is illegal")
        reward = float(action == self._legal.argmax())
        self._num_steps += 1
        return self._observation(), reward, self._num_steps == LENGTH, False, {}

    def _observation(self) -> dict[str, Any]:
        self._legal = self.np_random.integers(2, size=NUM_ACTIONS, dtype=np.int8)
        self._legal[self.np_random.integers(NUM_ACTIONS)] = 1
        hint = np.eye(NUM_ACTIONS, dtype=np.float32)[self._legal.argmax()]
        if self._num_steps == LENGTH:
            self._legal = np.zeros_like(self._legal)
        return {"hint": hint, self._key: self._legal.copy()}


for name, strict in (("Strict-v0", True), ("Lenient-v0", False)):
    gymnasium.register(name, f"{__name__}:LegalMoves", kwargs={"strict": strict})
gymnasium.register("Masked-v0", f"{__name__}:LegalMoves", kwargs={"strict": True, "key": "action_mask"})
