"""Rows: the results of one step of a vector of environments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.stream_status import FailureKind

Array = NDArray[Any]

Step = tuple[Any, float, bool, bool, Any]
"""Observation, reward, terminated, truncated and info of one environment."""

WAITING: tuple[()] = ()
"""Stands for a Step: it is not the turn of this agent."""
AgentStep = Step | tuple[()]


class EnvironmentFailure(Exception):  # noqa: N818 - it is the environment that failed
    """Error of an environment that raised, or broke its contract, in construction, reset or step."""

    def __init__(self, reason: str, kind: FailureKind = "exception") -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind


class AllQuarantined(EnvironmentFailure):
    """Error of a vector in which every environment failed too often: none of them will play again."""

    def __init__(self, last_failure: str) -> None:
        super().__init__(f"every environment failed too often, the last one: {last_failure}")
        self.last_failure = last_failure


@dataclass(frozen=True, slots=True)
class StepRows:
    """One row for each of B environments. Row i belongs to environment i in every field."""

    observation: list[Array]
    """One array [B, *row_shape] per leaf, or [B, *shape], the newest frame, if stacks are not kept (full_stacks)."""
    rewards: NDArray[np.float32]
    """float32 [B], received on arrival at the observation; unclipped, finite, 0 if is_first."""
    terminated: NDArray[np.bool_]
    """bool [B]: the training episode ended here by its own rules."""
    truncated: NDArray[np.bool_]
    """bool [B]: the episode was cut off here."""
    is_first: NDArray[np.bool_]
    """bool [B]: first observation of a training episode: every row of a reset and the row after a final one."""
    episodes: list[tuple[int, float, int]]
    """Whole games that ended here: environment, unclipped return, number of decisions."""
    interrupted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """bool [B], or [0] if there are none: the environment failed, and the row only keeps its place.

    Such a row has truncated set, terminated and is_first unset, reward 0 and an observation of zeros, with ones in an
    action mask; the action before it had no effect. While the environment stays broken, its rows alternate: the row
    after an interrupted one is first and keeps its place too, with zeros, and the one after that is interrupted again.
    If num_agents > 1, its rows are absent meanwhile, like those of an agent that has ended before the others: first and
    interrupted at once.
    """
    waiting: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """bool [B], or [0] if there are none: it is the turn of another agent, and the row only keeps its place.

    Such a row has no flag set, reward 0 and an observation of zeros, with ones in an action mask. Its action is
    ignored.
    """
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Broken environments, in order, with their last failures. Their rows only keep their places."""
    info_of: Callable[[int], Any] = lambda env: None
    """Returns the info of an environment's row, unchecked; None without one. Only valid until the next step."""

    def num_steps(self) -> int:
        """Returns the number of rows to which an action has led."""
        without_step = self.is_first
        for others in (self.interrupted, self.waiting):
            if others.any():
                without_step = without_step | others
        return len(without_step) - int(np.count_nonzero(without_step))

    def require_whole(self) -> None:
        """Raises EnvironmentFailure if an environment is broken, for callers that cannot continue without it."""
        for env, reason in self.failures:
            raise EnvironmentFailure(f"environment {env} failed: {reason}")


class OptionsError(Exception):
    """Error of environments that take no options at a reset, although some are chosen."""

    def __init__(self, kind: str) -> None:
        """`kind`: kind of the environments, in the plural."""
        super().__init__(f"{kind} take no options at a reset")


class HostedEnv(Protocol):
    """B environments in lock-step with NEXT_STEP autoreset; not thread-safe."""

    spec_observation: list[Leaf]
    spec_action: list[Leaf]
    num_envs: int
    num_agents: int
    """Agents of one environment. If there are several, each has a row, counts in num_envs, and may be absent."""
    takes_turns: bool
    """True if rows may be waiting."""

    def reset(self) -> StepRows:
        """Starts a new episode in every environment; creates broken ones again.

        Returns:
            The first rows of the episodes.

        Raises:
            EnvironmentFailure: The environments failed together, or all are quarantined.
        """

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        """Sets the options of all later resets of some environments, by index. Raises OptionsError if they take none,
        which names their kind.
        """

    def step(self, actions: list[Array]) -> StepRows:
        """Steps every environment. The action after a final or interrupted row is ignored: that step resets.

        Args:
            actions: One array [B, *shape] per action leaf.

        Returns:
            The next rows.

        Raises:
            EnvironmentFailure: The environments failed together, or all are quarantined.
        """

    def close(self) -> None: ...


class WithoutOptions:
    """Base class of a HostedEnv with resets that take no options."""

    kind = "these environments"
    """Kind of its environments, in the plural."""

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        raise OptionsError(self.kind)


class WrappedEnv:
    """Base class of a HostedEnv around another one."""

    def __init__(self, env: HostedEnv) -> None:
        self.spec_observation = env.spec_observation
        self.spec_action = env.spec_action
        self.num_envs = env.num_envs
        self.num_agents = env.num_agents
        self.takes_turns = env.takes_turns
        self._env = env

    @property
    def wrapped(self) -> HostedEnv:
        """The inner HostedEnv."""
        return self._env

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        self._env.set_options(options)

    def close(self) -> None:
        self._env.close()


class RenderedEnv(HostedEnv, Protocol):
    """A HostedEnv with pictures for viewers."""

    render_fps: float
    """Frames per second at the game's own speed."""

    def render(self) -> NDArray[np.uint8]:
        """Draws the moment of the newest rows, including a final one before the next reset. Requires a reset.

        Returns:
            uint8 [B, H, W, 3]; [0, 0, 0, 3] if there is nothing to show.

        Raises:
            EnvironmentFailure: An environment is broken, or its picture is invalid.
        """


def checked_rewards(rewards: Array) -> NDArray[np.float32]:
    """Returns the rewards as a new float32 array [B]. Raises EnvironmentFailure for the first that is not finite."""
    with np.errstate(all="ignore"):  # an environment may have set errors to raise
        result = np.array(rewards, dtype=np.float32)
    finite = np.isfinite(result)
    if not finite.all():
        env = int(np.argmin(finite))
        raise EnvironmentFailure(f"environment {env} returned the reward {result[env]}: it must be finite", "reward")
    return result
