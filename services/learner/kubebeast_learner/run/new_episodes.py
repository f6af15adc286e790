"""Episodes between two rows of logs.csv: a summary of all, and a bounded number of single returns."""

import math
from collections import deque

MAX_LISTED = 100
"""Maximum number of returns in a row, the newest ones; a row with every return could take megabytes."""


class NewEpisodes:
    """A collector of unclipped returns."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0
        self._min, self._max = math.inf, -math.inf
        self._newest: deque[float] = deque(maxlen=MAX_LISTED)

    def add(self, episode_return: float) -> None:
        self._count += 1
        self._sum += episode_return
        self._min, self._max = min(self._min, episode_return), max(self._max, episode_return)
        self._newest.append(episode_return)

    def columns(self) -> dict[str, int | float | tuple[float, ...] | None]:
        """Returns a summary of all returns, and the newest ones in PolyBeast's column episode_returns."""
        some = self._count > 0
        return {
            "new_episodes": self._count,
            "new_mean_return": self._sum / self._count if some else None,
            "new_min_return": self._min if some else None,
            "new_max_return": self._max if some else None,
            "episode_returns": tuple(self._newest),
        }
