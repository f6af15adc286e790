"""What other threads may know of a training while it runs."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from kubebeast_common.histogram import SecondsHistogram
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.ranks.turns import Turns
from kubebeast_learner.run.stats import Snapshot

FIRST_UPDATE_S = 600.0
"""Longest turn of the training loop before the process's first update is over: torch.compile takes minutes."""
LATER_UPDATE_S = 120.0
"""Longest turn afterwards: a short wait for rollouts and an update. Waiting for other ranks comes on top of both."""
SAVE_S = 3600.0
"""Longest save of a checkpoint: whoever is killed under way has lost it, and saves as long a one after the restart."""


class Monitor:
    """Whether the training loop turns, and its newest snapshot. Written by the training's thread, read by any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest_wait_s: float = 0.0) -> None:
        """longest_wait_s: of this rank for the others, after which it ends by itself; 0 for one that is alone."""
        self._clock = clock
        self._turned_at = clock()
        self._longest_wait_s = longest_wait_s
        self._longest_turn_s = FIRST_UPDATE_S
        self.snapshot: Snapshot | None = None
        """None before the first one."""
        self.phases = PhaseTimes()
        """Of the learner's updates."""
        self.turns: Turns | None = None
        """Of this rank; None before the training is there."""
        self.checkpoint_seconds = SecondsHistogram()
        """Of saving one that could be saved."""
        self.is_finished = False
        """Whether the training is over while its process stays."""

    def note_turn(self) -> None:
        """The loop is about to wait for rollouts, or for the environment."""
        self._turned_at = self._clock()

    def note_update(self) -> None:
        """An update is over."""
        self._longest_turn_s = LATER_UPDATE_S

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Around the save of a checkpoint, which takes as long as its disk does."""
        before, self._longest_turn_s = self._longest_turn_s, SAVE_S
        started_at = self._turned_at = self._clock()
        try:
            yield
            self.checkpoint_seconds.observe(self._clock() - started_at)
        finally:
            self._turned_at = self._clock()
            self._longest_turn_s = before

    def note_finished(self) -> None:
        """The training is over and turns no more."""
        self._longest_turn_s = math.inf
        self.is_finished = True

    def problem(self) -> str:
        """What is wrong with the loop; "" while it turns."""
        standstill_s = self._clock() - self._turned_at
        if standstill_s <= self._longest_turn_s + self._longest_wait_s:
            return ""
        return f"no progress of the training loop for {standstill_s:.0f} s"
