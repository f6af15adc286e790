"""Exchange of rows and actions between the pool and a vector environment.

The place of an environment is its slot in the pool. On the wire, each row follows the action for the previous row; if
an environment is lost, the next row of its place is the first of another environment's episode. The trainer must see
the end of the old episode before it: a truncated and lost row that repeats the last observation. Until the trainer has
received and answered this row, the new stream waits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.spec.spaces import Array
from kubebeast_fleet.fleet import Fleet
from kubebeast_native import EnvSpec, InferenceBatch


@dataclass(eq=False, slots=True)
class _Part:
    """Rows of a batch that are answered together."""

    batch: InferenceBatch
    slots: NDArray[np.int32]
    num_open: int
    """Number of its rows without an action."""
    is_early: bool = False
    """True if its places must show a lost row first."""


class Exchange:
    """The newest row of each place, [num_envs, ...], and the actions for them. Not thread-safe.

    A place waits for a row, is ready (its row can be returned), or is out (its row was returned and waits for an
    action).
    """

    def __init__(self, fleet: Fleet, spec: EnvSpec, *, split_streams: bool) -> None:
        """split_streams: True if actions of a stream must not wait for other streams; slower if there are many."""
        num_envs = fleet.num_envs
        self.observation: list[Array] = [np.zeros((num_envs, *leaf.row_shape), leaf.dtype) for leaf in spec.observation]
        self.rewards = np.zeros(num_envs, np.float32)
        self.terminated = np.zeros(num_envs, np.bool_)
        self.truncated = np.zeros(num_envs, np.bool_)
        self.is_first = np.zeros(num_envs, np.bool_)
        self.lost = np.zeros(num_envs, np.bool_)
        """True if the environment of the row has failed or left; the observation is an old one."""
        self.num_rows = {"first": 0, "step": 0, "lost": 0}
        """Number of returned rows by kind."""
        self._fleet = fleet
        self._split_streams = split_streams
        self._actions: list[Array] = [np.zeros((num_envs, *leaf.shape), leaf.dtype) for leaf in spec.action]
        self._due = np.ones(num_envs, np.bool_)  # the next row must begin an episode
        self._out = np.zeros(num_envs, np.bool_)
        self._ready: list[int] = []
        self._parts: list[_Part | None] = [None] * num_envs

    def receive(self, count: int) -> NDArray[np.int64]:
        """Blocks until `count` rows are ready, and returns their places, oldest first.

        Raises the errors of Fleet.next_batch, and ValueError if fewer than `count` places are not out.
        """
        if not 1 <= count <= self._out.size - self._out.sum():
            raise ValueError(f"batch_size = {count}: {self._out.sum()} of {self._out.size} rows wait for an action")
        while len(self._ready) < count:
            self._take(self._fleet.next_batch())
        places = np.array(self._ready[:count], np.int64)
        del self._ready[:count]
        self._out[places] = True
        lost, first = self.lost[places], self.is_first[places]
        self.num_rows["lost"] += int(lost.sum())
        self.num_rows["first"] += int((first & ~lost).sum())
        self.num_rows["step"] += int((~first & ~lost).sum())
        return places

    def answer(self, leaves: list[Array], places: NDArray[np.integer]) -> None:
        """Takes actions [M, *shape] for rows that are out. Never blocks. Raises ValueError if a place is not out."""
        if np.unique(places).size != places.size or not self._out[places].all():
            raise ValueError(f"env_id = {places.tolist()}: an action answers a row that was received, and once")
        self._out[places] = False
        for mine, leaf in zip(self._actions, leaves, strict=True):
            mine[places] = leaf
        for place in places.tolist():
            part = self._parts[place]
            assert part is not None, "a row that is out belongs to a part"
            part.num_open -= 1
            if part.num_open == 0:
                self._finish(part)

    def _take(self, batch: InferenceBatch) -> None:
        is_early = (batch.is_first & ~self._due[batch.slots]).any()
        for part in batch.split() if is_early or self._split_streams else [batch]:
            slots = part.slots
            taken = _Part(part, slots, slots.size, bool((part.is_first & ~self._due[slots]).any()))
            for place in slots.tolist():
                self._parts[place] = taken
            if taken.is_early:
                self._lose(slots)
            else:
                self._show(taken)

    def _show(self, part: _Part) -> None:
        """Makes the rows of the part ready."""
        batch, slots = part.batch, part.slots
        lost = batch.interrupted
        shown = slice(None) if not lost.any() else ~lost
        for mine, leaf in zip(self.observation, batch.observation, strict=True):
            mine[slots[shown]] = leaf[shown]
        self.rewards[slots] = batch.rewards
        self.terminated[slots] = batch.terminated
        self.truncated[slots] = batch.truncated
        self.is_first[slots] = batch.is_first
        self.lost[slots] = lost
        self._due[slots] = batch.terminated | batch.truncated
        self._ready += slots.tolist()

    def _lose(self, slots: NDArray[np.int32]) -> None:
        """Makes lost rows ready for these slots."""
        self.rewards[slots] = 0.0
        self.terminated[slots] = False
        self.truncated[slots] = True
        self.is_first[slots] = False
        self.lost[slots] = True
        self._due[slots] = True
        self._ready += slots.tolist()

    def _finish(self, part: _Part) -> None:
        """Handles a fully answered part: replies to its batch, or shows its rows after the lost ones."""
        if part.is_early:
            part.is_early, part.num_open = False, part.slots.size
            self._show(part)
            return
        for place in part.slots.tolist():
            self._parts[place] = None
        rows = part.slots.size
        actions = [leaf[part.slots] for leaf in self._actions]
        part.batch.reply(actions, np.zeros((rows, 0), np.float32), np.zeros(rows, np.float32), 0)
