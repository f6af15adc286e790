"""How many failures are too many."""

import time
from collections import deque
from collections.abc import Callable


class FailureWindow:
    """Counts failures within a moving window of time."""

    def __init__(self, limit: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        self._times: deque[float] = deque(maxlen=limit)

    def add(self) -> bool:
        """Counts one failure; returns whether the last `limit` of them happened within window_s seconds."""
        self._times.append(self._clock())
        return len(self._times) == self._times.maxlen and self._times[-1] - self._times[0] <= self._window_s
