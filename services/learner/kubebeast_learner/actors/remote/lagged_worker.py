"""Inference with a fixed lag: each unroll of a group of environments is played with the weights that a schedule gives.

A stream is a group. A row that begins an unroll waits for the order of that unroll.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from kubebeast_learner.actors.pool_thread import PoolThread
from kubebeast_learner.actors.runner import EagerRunner
from kubebeast_learner.actors.weights import RecentWeights
from kubebeast_native import ActorPool, InferenceBatch, StreamInfo

_log = logging.getLogger(__name__)


class UnrollOrder(NamedTuple):
    """An unroll that a group is to play."""

    number: int
    """Place in the order of training."""
    version: int
    """Version of the weights."""


class _Group:
    """The stream of a group, and its unrolls. Not thread-safe."""

    def __init__(self, runner: EagerRunner) -> None:
        self.runner = runner
        self.orders: deque[UnrollOrder] = deque()
        self.current: UnrollOrder | None = None
        self.instance = ""
        self.waiting: InferenceBatch | None = None
        """Rows that begin an unroll that has not been ordered yet."""

    def join(self, instance: str) -> bool:
        """Begins the rows of a stream; returns True if it replaces another one; the unroll of that is played again."""
        if instance == self.instance:
            return False
        is_replacement, self.instance, self.waiting = self.instance != "", instance, None
        if self.current is not None:
            self.orders.appendleft(self.current)
            self.current = None
        return is_replacement


class LaggedWorker(PoolThread):
    """The thread that answers the rows of all groups, each with an own source of random numbers.

    The policy_version of a reply is the number of its unroll.
    """

    def __init__(
        self,
        pool: ActorPool,
        weights: RecentWeights,
        runners: Sequence[EagerRunner],
        group_of: Callable[[StreamInfo], int],
        device: torch.device,
    ) -> None:
        """runners: that of each group. group_of: returns the group of a stream."""
        super().__init__(pool, device)
        self._streams = pool.streams
        self._recent = weights
        self._groups = [_Group(runner) for runner in runners]
        self._group_of = group_of
        self._by_slot: dict[int, int] = {}
        self._lock = threading.Lock()
        self._numbers: dict[tuple[str, int], int] = {}
        """Number of unroll n of a stream, by instance_id and n."""
        self._num_unrolls: dict[str, int] = {}

    def order(self, group: int, order: UnrollOrder) -> None:
        """Adds an unroll of a group, and begins it if its rows wait. For the learner's thread."""
        with self._lock:
            mine = self._groups[group]
            mine.orders.append(order)
            if mine.waiting is not None:
                rows, mine.waiting = mine.waiting, None
                with torch.inference_mode():
                    self._begin_unroll(mine, rows)

    def number_of(self, instance_id: str, place: int) -> int:
        """Returns the number of unroll `place` of a stream, which has begun and was not forgotten."""
        with self._lock:
            return self._numbers[instance_id, place]

    def forget(self, end: int) -> None:
        """Forgets the unrolls below the number `end`."""
        with self._lock:
            self._numbers = {key: number for key, number in self._numbers.items() if number >= end}

    def _answer(self, batch: InferenceBatch) -> None:
        for rows in batch.split():
            with self._lock:
                self._take(rows)

    def _take(self, rows: InferenceBatch) -> None:
        group = self._find_group(rows)
        if group is None:
            return
        if rows.unroll_start.all():
            self._begin_unroll(group, rows)
        else:
            self._reply(group, rows)

    def _find_group(self, rows: InferenceBatch) -> _Group | None:
        """Returns the group of rows of one stream; None if the stream has ended."""
        slot = int(rows.slots[0])
        if slot not in self._by_slot or rows.is_first.all():
            stream = next((each for each in self._streams() if slot in each.slots), None)
            if stream is None:
                return None
            self._by_slot[slot] = self._group_of(stream)
            if self._groups[self._by_slot[slot]].join(stream.instance_id):
                _log.warning("%s has a new stream: another run would not be the same", stream.env_server_id)
        return self._groups[self._by_slot[slot]]

    def _begin_unroll(self, group: _Group, rows: InferenceBatch) -> None:
        if not group.orders:
            group.current, group.waiting = None, rows
            return
        group.current = group.orders.popleft()
        place = self._num_unrolls.get(group.instance, 0)
        self._num_unrolls[group.instance] = place + 1
        self._numbers[group.instance, place] = group.current.number
        self._reply(group, rows)

    def _reply(self, group: _Group, rows: InferenceBatch) -> None:
        assert group.current is not None, "an unroll has begun"
        model = self._recent.at(group.current.version)
        answer = group.runner.run(rows, model, group.current.version)
        before = None if answer.core_state is None else answer.core_state.numpy()
        leaves = model.distribution.to_leaves(answer.action)
        rows.reply(leaves, answer.record.numpy(), answer.baseline.numpy(), group.current.number, before)
