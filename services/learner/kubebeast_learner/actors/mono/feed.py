"""Orders of blocks to the actor processes, and the filled blocks in the order of training."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubebeast_learner.actors.lag import LagSchedule
from kubebeast_learner.actors.mono.actor_process import ActorProcess
from kubebeast_learner.actors.mono.origins import Origin
from kubebeast_learner.run.task_returns import Episode


@dataclass(slots=True)
class Filled:
    """A block that is with the learner."""

    process: ActorProcess
    number: int
    episodes: list[Episode]
    """Episodes that ended in it."""
    origins: Sequence[Origin]
    """Origin of each of its columns."""
    columns: list[int] = field(default_factory=list)
    """Columns still to be taken, in ascending order."""


class Feed(Protocol):
    """Order of blocks. Not thread-safe; never blocks."""

    def begin_batch(self, version: int) -> None:
        """Orders the blocks that may be filled now, before each batch. version: that of the newest weights."""

    def add(self, filled: Filled) -> list[Filled]:
        """Adds one more filled block; returns those that are next in the order of training, with their columns set."""

    def give_back(self, process: ActorProcess, number: int) -> None:
        """Takes back a block that was used up."""


class FreeFeed:
    """Blocks as they come: each is filled again at once, with the newest weights.

    Columns of environments that failed are left out if they hold no valid transition.
    """

    def __init__(self, processes: Sequence[ActorProcess]) -> None:
        self._unordered = [(process, number) for process in processes for number in range(len(process.blocks))]

    def begin_batch(self, version: int) -> None:
        for process, number in self._unordered:
            process.order(number)
        self._unordered.clear()

    def add(self, filled: Filled) -> list[Filled]:
        valid = filled.process.blocks[filled.number].valid
        filled.columns = valid.any(dim=0).nonzero().flatten().tolist()
        return [filled]

    def give_back(self, process: ActorProcess, number: int) -> None:
        process.order(number)


class LagFeed:
    """Blocks with all their columns in the order of a LagSchedule, whatever process is the fastest."""

    def __init__(self, schedule: LagSchedule, groups: Sequence[tuple[ActorProcess, int]]) -> None:
        """groups: the process of each group, and the number of the first of its blocks there."""
        self._schedule = schedule
        self._processes = [process for process, _ in groups]
        self._free = [deque(range(first, first + schedule.unrolls_per_group)) for _, first in groups]
        self._group_of = {
            (process.index, number): group
            for group, (process, numbers) in enumerate(zip(self._processes, self._free, strict=True))
            for number in numbers
        }
        self._expected: deque[tuple[int, int]] = deque()
        self._filled: dict[tuple[int, int], Filled] = {}

    def begin_batch(self, version: int) -> None:
        for order in self._schedule.release(version):
            process, number = self._processes[order.group], self._free[order.group].popleft()
            self._expected.append((process.index, number))
            process.order(number, order.version)

    def add(self, filled: Filled) -> list[Filled]:
        filled.columns = list(range(filled.process.blocks[filled.number].valid.shape[1]))
        self._filled[filled.process.index, filled.number] = filled
        in_order = []
        while self._expected and (block := self._filled.pop(self._expected[0], None)) is not None:
            self._expected.popleft()
            in_order.append(block)
        return in_order

    def give_back(self, process: ActorProcess, number: int) -> None:
        self._free[self._group_of[process.index, number]].append(number)
