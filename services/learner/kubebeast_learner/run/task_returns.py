"""Returns of finished episodes by task: several environments may feed one learner."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kubebeast_common.text import printable

RECENT_EPISODES = 100
MAX_TASKS = 32
OTHER = "other"
"""Name of all tasks after the first MAX_TASKS: peers choose the names of their tasks freely."""
MAX_NAME = 100
"""Maximum number of characters of a task's name."""


class FinishedEpisode(Protocol):
    """A finished episode, such as kubebeast_native.Episode."""

    @property
    def env_id(self) -> str: ...
    @property
    def episode_return(self) -> float: ...
    @property
    def length(self) -> int: ...
    @property
    def info(self) -> Sequence[float]:
        """One number for each key of log_info, NaN if the environment has none; or empty."""

    @property
    def options(self) -> str:
        """Options with which it began, a JSON object: its level; "" without any."""

    @property
    def opponents(self) -> Sequence[int]:
        """Numbers of the versions that played the other agents; empty if all agents learn."""


class Episode(NamedTuple):
    """A FinishedEpisode of plain values, which processes send to each other."""

    env_id: str
    episode_return: float
    length: int
    info: Sequence[float] = ()
    options: str = ""
    opponents: Sequence[int] = ()

    @classmethod
    def of(cls, episode: FinishedEpisode) -> "Episode":
        return cls(*(getattr(episode, name) for name in cls._fields))


class TaskReturn(NamedTuple):
    """Results of one task."""

    num_episodes: int
    """Episodes since the process started."""
    mean_return: float
    """Mean unclipped return of the newest RECENT_EPISODES episodes."""


class TaskReturns:
    """Returns by task. Written by one thread, readable from any."""

    def __init__(self) -> None:
        self._returns: dict[str, deque[float]] = {}
        self._counts: dict[str, int] = {}
        self.newest: dict[str, TaskReturn] = {}
        """Results by task. The mapping is replaced, never changed."""

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
        """Returns the mean unclipped return of the newest episodes by task, at most RECENT_EPISODES of each."""
        newest = {name: list(returns)[-num_episodes:] for name, returns in self._returns.items()}
        return {name: sum(returns) / len(returns) for name, returns in newest.items()}

    def lowest_mean(self) -> float | None:
        """Returns the lowest mean of a task; None without tasks, or if one has fewer than RECENT_EPISODES."""
        if not self._returns or any(len(returns) < RECENT_EPISODES for returns in self._returns.values()):
            return None
        return min(self.means().values())

    def state_dict(self) -> dict[str, list[float]]:
        """Returns plain values for a checkpoint.

        They are the newest returns of the tasks played since the process started or, if there are none, of all tasks.
        """
        return {name: list(self._returns[name]) for name in (self._counts or self._returns)}

    def load_state_dict(self, state: Mapping[str, Sequence[float]]) -> None:
        """Restores the returns of `state_dict`, without counting them as finished episodes again."""
        self._returns = {name: deque(returns, RECENT_EPISODES) for name, returns in state.items() if returns}
