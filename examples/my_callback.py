"""A callback of your own: the learner calls it at updates, ends of episodes, checkpoints and at its end.

kubebeast mono --env CartPole-v1 --callback my_callback:Patience
"""

from pathlib import Path
from typing import Any


class Patience:
    """Ends a run if a number of episodes brings no better return, and lists its checkpoints in a file."""

    def __init__(self, folder: Path, episodes: int = 500) -> None:
        self._list = folder / "checkpoints.txt"
        self._best, self._num_since, self._patience = float("-inf"), 0, episodes

    def on_episode(self, step: int, episode: Any) -> bool:
        self._num_since += 1
        if episode.episode_return > self._best:
            self._best, self._num_since = episode.episode_return, 0
        return self._num_since >= self._patience

    def on_checkpoint(self, step: int, place: str) -> None:
        with open(self._list, "a") as file:
            print(step, place, file=file)
