"""Means of numbers in the info of the newest episodes, by the keys of log_info."""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from kubebeast_learner.run.task_returns import RECENT_EPISODES, FinishedEpisode


class InfoMeans:
    """A collector of the numbers of finished episodes."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._newest: dict[str, deque[float]] = {key: deque(maxlen=RECENT_EPISODES) for key in keys}

    def add(self, episodes: Iterable[FinishedEpisode]) -> None:
        """Adds the numbers of `info`; an episode without one does not count for its key."""
        for episode in episodes:
            for newest, number in zip(self._newest.values(), episode.info, strict=False):
                if math.isfinite(number):
                    newest.append(float(number))

    def means(self) -> dict[str, float | None]:
        """Returns the mean over the newest RECENT_EPISODES episodes with each key, of all tasks; None before one."""
        return {key: sum(newest) / len(newest) if newest else None for key, newest in self._newest.items()}

    def state_dict(self) -> dict[str, list[float]]:
        """Returns plain values for a checkpoint."""
        return {key: list(newest) for key, newest in self._newest.items()}

    def load_state_dict(self, state: Mapping[str, Sequence[float]]) -> None:
        """Restores the numbers of the keys that the run still logs."""
        for key, newest in self._newest.items():
            newest.extend(state.get(key, ()))
