"""What one step of a vector of environments yields."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kubebeast_envserver.rows.spaces import Leaf
from kubebeast_envserver.rows.stream_status import FailureKind

Array = NDArray[Any]

Step = tuple[Any, float, bool, bool]
"""Observation, reward, terminated and truncated of one environment."""


class EnvironmentFailure(Exception):  # noqa: N818 - it is the environment that failed
    """An environment raised, or broke its contract, in construction, reset or step."""

    def __init__(self, reason: str, kind: FailureKind = "exception") -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind


class AllQuarantined(EnvironmentFailure):
    """Every environment of a vector failed too often: none of them will play again."""

    def __init__(self, last_failure: str) -> None:
        super().__init__(f"every environment failed too often, the last one: {last_failure}")
        self.last_failure = last_failure


@dataclass(frozen=True, slots=True)
class StepRows:
    """One row for each of B environments. Row i belongs to environment i in every field."""

    observation: list[Array]
    """One array a leaf, [B, *row_shape]; [B, *shape], the newest frame, where stacks are not kept (full_stacks)."""
    rewards: NDArray[np.float32]
    """float32 [B], received on arrival at the observation; unclipped, finite, 0 where is_first."""
    terminated: NDArray[np.bool_]
    """bool [B]: the training episode ended here by its own rules."""
    truncated: NDArray[np.bool_]
    """bool [B]: the episode was cut off here."""
    is_first: NDArray[np.bool_]
    """bool [B]: first observation of a training episode: every row of a reset and the row after a final one."""
    episodes: list[tuple[int, float, int]]
    """Whole games that ended here: environment, unclipped return, number of decisions."""
    interrupted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """bool [B], or [0] when none was: the environment failed, the row only keeps its place.

    Such a row has truncated set, terminated and is_first unset, reward 0 and an observation of zeros; the action before
    it had no consequence. While the environment stays broken, its rows alternate: the one after an interrupted row
    is_first and keeps its place too, with zeros, and the one after that is interrupted again. Where num_agents > 1, its
    rows are absent meanwhile, as those of an agent are that has ended before the others: first and interrupted at once.
    """
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Broken environments, whose rows only keep their places, in order, and why: what failed last."""

    def require_whole(self) -> None:
        """Raises EnvironmentFailure when an environment is broken: for those who cannot go on without it."""
        for env, reason in self.failures:
            raise EnvironmentFailure(f"environment {env} failed: {reason}")


class HostedEnv(Protocol):
    """B environments in lock-step with NEXT_STEP autoreset; not thread-safe."""

    spec_observation: list[Leaf]
    spec_action: list[Leaf]
    num_envs: int
    num_agents: int
    """Of one environment. More than one have a row each, which num_envs counts, and may be absent."""

    def reset(self) -> StepRows:
        """Starts a new episode in every environment; creates a broken one again. Raises EnvironmentFailure."""

    def step(self, actions: list[Array]) -> StepRows:
        """Takes one array [B, *shape] an action leaf. Raises EnvironmentFailure.

        The action after a final or interrupted row is ignored: that step resets.
        """

    def close(self) -> None: ...


class WrappedEnv:
    """Of a HostedEnv around another one: what both have in common."""

    def __init__(self, env: HostedEnv) -> None:
        self.spec_observation = env.spec_observation
        self.spec_action = env.spec_action
        self.num_envs = env.num_envs
        self.num_agents = env.num_agents
        self._env = env

    def close(self) -> None:
        self._env.close()


class RenderedEnv(HostedEnv, Protocol):
    """A HostedEnv that people can watch."""

    render_fps: float
    """Frames a second at the game's own speed."""

    def render(self) -> NDArray[np.uint8]:
        """uint8 [B, H, W, 3]: the moment of the newest rows, a final one before the next reset included.

        After a reset. Raises EnvironmentFailure.
        """


def checked_rewards(rewards: Array) -> NDArray[np.float32]:
    """The rewards as a float32 array [B] of its own; EnvironmentFailure names the first that is not finite."""
    result = np.array(rewards, dtype=np.float32)
    finite = np.isfinite(result)
    if not finite.all():
        env = int(np.argmin(finite))
        raise EnvironmentFailure(f"environment {env} returned the reward {result[env]}: it must be finite", "reward")
    return result
