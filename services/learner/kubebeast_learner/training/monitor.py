"""State of a training that other threads may read while it runs."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kubebeast_common.histogram import SecondsHistogram
from kubebeast_learner.notices.inbox import Notices
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.ranks.turns import Turns

if TYPE_CHECKING:  # it loads the algorithm, which readers of metrics do not need
    from kubebeast_learner.run.snapshot import Snapshot

FIRST_UPDATE_S = 600.0
"""Longest turn of the training loop until the first update of the process: torch.compile takes minutes."""
LATER_UPDATE_S = 120.0
"""Longest turn afterwards: a short wait for rollouts and an update. Waits for other ranks come on top of both."""
SAVE_S = 3600.0
"""Longest save of a checkpoint: a process killed during it has lost the save, and takes as long after the restart."""


class Monitor:
    """Liveness of the training loop, and its newest snapshot. Written by the training's thread, readable from any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest_wait_s: float = 0.0) -> None:
        """`longest_wait_s` is this rank's longest wait for the others, after which it ends; 0 for a single learner."""
        self._clock = clock
        self._turned_at = clock()
        self._longest_wait_s = longest_wait_s
        self._longest_turn_s = FIRST_UPDATE_S
        self.snapshot: Snapshot | None = None
        """Newest snapshot; None before the first one."""
        self.notices = Notices()
        """Notices for the node, which another thread adds."""
        self.phases = PhaseTimes()
        """Phase times of the learner's updates."""
        self.turns: Turns | None = None
        """Turns of this rank; None before the training exists."""
        self.checkpoint_seconds = SecondsHistogram()
        """Durations of successful saves."""
        self.num_crashes: int | None = None
        """Earlier processes of the run that were killed or failed; None if they are unknown to this rank."""
        self.is_finished = False
        """True if the training is over but its process stays."""
        self.folder: Path | None = None
        """Folder of the run; None before it is known, and on a rank that writes nothing."""
        self.write_failures: Mapping[str, int] = {}
        """Failed writes by file, as counted by WriteFailures."""

    def note_files(self, folder: Path | None, write_failures: Mapping[str, int]) -> None:
        """Sets the folder of the run and its failed writes, a mapping that continues to change."""
        self.folder, self.write_failures = folder, write_failures

    def note_turn(self) -> None:
        """Marks the beginning of a wait for rollouts or for the environment."""
        self._turned_at = self._clock()

    def note_update(self) -> None:
        """Marks the end of an update."""
        self._longest_turn_s = LATER_UPDATE_S

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Context of a wait for the save of a checkpoint, which may be longer than a turn."""
        before, self._longest_turn_s = self._longest_turn_s, SAVE_S
        self._turned_at = self._clock()
        try:
            yield
        finally:
            self._turned_at = self._clock()
            self._longest_turn_s = before

    def note_finished(self) -> None:
        """Marks the end of the training, after which there are no turns."""
        self._longest_turn_s = math.inf
        self.is_finished = True

    def problem(self) -> str:
        """Returns the problem of the loop; "" if it makes progress."""
        standstill_s = self._clock() - self._turned_at
        if standstill_s <= self._longest_turn_s + self._longest_wait_s:
            return ""
        return f"no progress of the training loop for {standstill_s:.0f} s"
