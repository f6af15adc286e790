"""What the episodes of each task return: several environments may feed one learner."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kubebeast_envserver.codec import printable
from kubebeast_learner.run_stats import RECENT_EPISODES

MAX_TASKS = 32
OTHER = "other"
"""Stands for every task after the first MAX_TASKS: a peer names its task as it likes."""
MAX_NAME = 100
"""Characters kept of a task's name."""


class TaskEpisode(Protocol):
    """kubebeast_native.Episode is one."""

    @property
    def env_id(self) -> str: ...
    @property
    def episode_return(self) -> float: ...


class TaskReturn(NamedTuple):
    """Of one task, since the process started."""

    num_episodes: int
    mean_return: float
    """Unclipped, over the newest RECENT_EPISODES episodes."""


class TaskReturns:
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._returns: dict[str, deque[float]] = {}
        self._counts: dict[str, int] = {}
        self.newest: dict[str, TaskReturn] = {}
        """By the name of the task. Replaced, never changed."""

    def add(self, episodes: Iterable[TaskEpisode]) -> None:
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
