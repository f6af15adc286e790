"""Time and CPU time of a call."""

import statistics
import time
from collections.abc import Callable

from kubebeast_learner.tune.pieces import Call

WARMUP_CALLS = 2
"""Calls that fill caches and allocate; they are not measured."""
LEAST_CALLS = 3
"""Minimum number of measured calls."""


class Laps:
    """Timer of consecutive calls in this process: the median of their times, the mean of their CPU time."""

    def __init__(self, seconds: float) -> None:
        """seconds: duration of all calls together."""
        self._seconds = seconds
        self._walls: list[float] = []
        self._num_calls = 0
        self._began = self._cpu_began = self._last = 0.0

    def next(self) -> bool:
        """Returns True if another call is to be made. Call it before each call, and after the last."""
        now = time.perf_counter()
        self._num_calls += 1
        if self._num_calls <= WARMUP_CALLS + 1:
            self._began, self._cpu_began = now, time.process_time()
        else:
            self._walls.append(now - self._last)
        self._last = now
        return len(self._walls) < LEAST_CALLS or now - self._began < self._seconds

    def result(self) -> Call:
        """Returns the result, after the last call."""
        cpu_s = (time.process_time() - self._cpu_began) / len(self._walls)
        return Call(wall_s=statistics.median(self._walls), cpu_s=cpu_s)


def time_calls(call: Callable[[], object], seconds: float) -> Call:
    """Repeats the call for `seconds`."""
    laps = Laps(seconds)
    while laps.next():
        call()
    return laps.result()
