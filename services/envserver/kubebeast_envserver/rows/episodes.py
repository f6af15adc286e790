"""Returns and lengths of whole games, which training may split into several episodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class EpisodeCounter:
    """Sums of rewards and decisions for each of B environments."""

    def __init__(self, num_envs: int) -> None:
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)

    def reset(self, envs: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Drops the running games of `envs`, by default of all."""
        self._returns[envs] = 0.0
        self._lengths[envs] = 0

    def add(self, rewards: NDArray[np.floating[Any]], decisions: NDArray[np.bool_]) -> None:
        """Counts one step.

        `rewards` [B] are unclipped and as precise as possible; `decisions` is bool [B], False if the action was
        ignored.
        """
        self._returns += rewards
        self._lengths += decisions

    def finish(self, over: NDArray[np.bool_]) -> list[tuple[int, float, int]]:
        """Ends the games marked in `over`, bool [B]; returns environment, return and length of each."""
        if not over.any():
            return []
        games = [(int(env), float(self._returns[env]), int(self._lengths[env])) for env in np.flatnonzero(over)]
        self.reset(over)
        return games
