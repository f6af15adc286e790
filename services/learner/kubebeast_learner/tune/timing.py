"""How long a call takes, and what it uses."""

import statistics
import time
from collections.abc import Callable

from kubebeast_learner.tune.pieces import Call

WARMUP_CALLS = 2
"""They fill caches and allocate; not measured."""
LEAST_CALLS = 3
"""Measured, however long they take."""


class Laps:
    """Counts calls that follow one another, of this process alone: the median of their times, the mean of their CPU."""

    def __init__(self, seconds: float) -> None:
        """seconds: how long calls are to be made, in all."""
        self._seconds = seconds
        self._walls: list[float] = []
        self._num_calls = 0
        self._began = self._cpu_began = self._last = 0.0

    def next(self) -> bool:
        """Called before each call, and after the last: whether another one is to be made."""
        now = time.perf_counter()
        self._num_calls += 1
        if self._num_calls <= WARMUP_CALLS + 1:
            self._began, self._cpu_began = now, time.process_time()
        else:
            self._walls.append(now - self._last)
        self._last = now
        return len(self._walls) < LEAST_CALLS or now - self._began < self._seconds

    def result(self) -> Call:
        """After the last call."""
        cpu_s = (time.process_time() - self._cpu_began) / len(self._walls)
        return Call(wall_s=statistics.median(self._walls), cpu_s=cpu_s)


def time_calls(call: Callable[[], object], seconds: float) -> Call:
    """Calls again and again for so long."""
    laps = Laps(seconds)
    while laps.next():
        call()
    return laps.result()
