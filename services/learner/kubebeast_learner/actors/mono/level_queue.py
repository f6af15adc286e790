"""Levels of an actor process: both ends of the queue from the learner's curriculum to the environments."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from kubebeast_common.spec.episode_options import from_text
from kubebeast_envserver.rows.rows import HostedEnv, StepRows
from kubebeast_envserver.rows.stream_status import StreamStatus

RECENT_BLOCKS = 8
"""Newest blocks of a process whose resets count for the number of levels that it should have ready."""


class LevelSupply:
    """The learner's end: levels that go to the process with its orders. Not thread-safe."""

    def __init__(self, draw: Callable[[int], Sequence[str]], num_envs: int, num_blocks: int) -> None:
        """`draw` returns further levels, as texts. `num_blocks`: the most that the process has orders for at a time."""
        self._draw = draw
        self._num_envs, self._num_blocks = num_envs, max(2, num_blocks)
        self._wanted: deque[int] = deque([0], RECENT_BLOCKS)
        """Resets in each of the newest blocks that wanted another level."""
        self._num_left = 0
        """Levels that the process has, according to its newest message and the orders since."""

    @property
    def _num_ready(self) -> int:
        """Levels that the process should have ready; more if its episodes are short, as it may fill all its blocks
        before it receives the next order.
        """
        return max(self._num_envs, self._num_blocks * max(self._wanted))

    def begin(self, num_repeated: int = 0) -> tuple[str, ...]:
        """Returns the levels for a start of the process: one for each environment, and those that should be ready.

        `num_repeated`: levels in the orders of an earlier process that this one gets.
        """
        self._num_left = self._num_ready + num_repeated
        return tuple(self._draw(self._num_envs + self._num_ready))

    def refill(self) -> tuple[str, ...]:
        """Returns the levels that are missing, for the next order."""
        missing = max(0, self._num_ready - self._num_left)
        self._num_left += missing
        return tuple(self._draw(missing)) if missing else ()

    def note(self, num_wanted: int, num_taken: int) -> None:
        """Records a filled block: resets that wanted another level, and those that received one."""
        self._num_left -= num_taken
        self._wanted.append(num_wanted)


class LevelQueue:
    """The process's end: a level for each reset. While there is none, an environment keeps its own."""

    def __init__(self, env: HostedEnv, levels: Sequence[str], status: StreamStatus) -> None:
        """`levels`: those of LevelSupply.begin, or none without a curriculum. `status` counts failures of `env`. Comes
        before the first reset.

        Raises OptionsError if the environments take no options.
        """
        self._env, self._status = env, status
        self._ready = deque(levels)
        self._playing = [""] * env.num_envs
        self._failures_at = [0] * env.num_envs
        """Number of failures at the time of each environment's newest level."""
        self._num_wanted = self._num_taken = 0
        if levels:
            self._set(range(env.num_envs))
            self.take_counts()  # the supply has counted them apart from those that should be ready

    def add(self, levels: Iterable[str]) -> None:
        self._ready.extend(levels)

    def of(self, env: int) -> str:
        """Returns the text of the level of an environment's newest episode; "" without levels."""
        return self._playing[env]

    def note(self, rows: StepRows) -> None:
        """Sets the levels of environments that the next step resets."""
        if self._playing[0]:
            over = (rows.terminated | rows.truncated) & ~rows.is_first
            if over.any():
                self._set([env for env in over.nonzero()[0].tolist() if self._is_due(rows, env)])

    def take_counts(self) -> tuple[int, int]:
        """Returns the resets since the last call that wanted another level, and those that received one."""
        counts = self._num_wanted, self._num_taken
        self._num_wanted = self._num_taken = 0
        return counts

    def _set(self, envs: Sequence[int]) -> None:
        self._num_wanted += len(envs)
        chosen = {env: self._ready.popleft() for env in list(envs)[: len(self._ready)]}
        self._num_taken += len(chosen)
        for env, text in chosen.items():
            self._playing[env], self._failures_at[env] = text, self._status.num_failures
        if chosen:
            self._env.set_options({env: from_text(text) for env, text in chosen.items()})

    def _is_due(self, rows: StepRows, env: int) -> bool:
        """Returns True if an environment with a final row needs another level: not one that is broken, or given up,
        without a failure since its newest level. Its rows alternate, and would use up a level for each two steps.
        """
        if not rows.interrupted.any() or not rows.interrupted[env]:
            return True
        return self._failures_at[env] != self._status.num_failures
