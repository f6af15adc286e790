"""What the episodes of each task return: several environments may feed one learner."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kubebeast_common.text import printable

RECENT_EPISODES = 100
MAX_TASKS = 32
OTHER = "other"
"""Stands for every task after the first MAX_TASKS: a peer names its task as it likes."""
MAX_NAME = 100
"""Characters kept of a task's name."""


class FinishedEpisode(Protocol):
    """kubebeast_native.Episode is one."""

    @property
    def env_id(self) -> str: ...
    @property
    def episode_return(self) -> float: ...
    @property
    def length(self) -> int: ...


class Episode(NamedTuple):
    """A FinishedEpisode of plain values, as ranks tell them."""

    env_id: str
    episode_return: float
    length: int


class TaskReturn(NamedTuple):
    """Of one task."""

    num_episodes: int
    """Since the process started."""
    mean_return: float
    """Unclipped, over the newest RECENT_EPISODES episodes."""


class TaskReturns:
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._returns: dict[str, deque[float]] = {}
        self._counts: dict[str, int] = {}
        self.newest: dict[str, TaskReturn] = {}
        """By the name of the task. Replaced, never changed."""

    def add(self, episodes: Iterable[FinishedEpisode]) -> None:
        touched: dict[str, TaskReturn] = {}
        for episode in episodes:
            name = printable(episode.env_id, MAX_NAME)
            if name not in self._returns and len(self._returns) >= MAX_TASKS:
                name = OTHER
            returns = self._returns.setdefault(name, deque(maxlen=RECENT_EPISODES))
            returns.append(float(episode.episode_return))
            self._counts[name] = self._counts.get(name, 0) + 1
            touched[name] = TaskReturn(self._counts[name], sum(returns) / len(returns))
        if touched:
            self.newest = self.newest | touched

    def means(self, num_episodes: int = RECENT_EPISODES) -> dict[str, float]:
        """By task: the mean unclipped return of its newest episodes, at most RECENT_EPISODES."""
        newest = {name: list(returns)[-num_episodes:] for name, returns in self._returns.items()}
        return {name: sum(returns) / len(returns) for name, returns in newest.items()}

    def state_dict(self) -> dict[str, list[float]]:
        """Plain values for a checkpoint: the newest returns of each task that was played since the process started, or
        of all while there is none.
        """
        return {name: list(self._returns[name]) for name in (self._counts or self._returns)}

    def load_state_dict(self, state: Mapping[str, Sequence[float]]) -> None:
        """Restores the returns that `state_dict` gave. They are not counted again as finished episodes."""
        self._returns = {name: deque(returns, RECENT_EPISODES) for name, returns in state.items() if returns}
