"""How many failures are too many, and which of them are worth a line in the log."""

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


class Repetitions:
    """Lets a text pass when it differs from the one before, or when that is long ago."""

    def __init__(self, interval_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._last = ""
        self._passed_at = 0.0

    def is_news(self, text: str) -> bool:
        now = self._clock()
        if text == self._last and now - self._passed_at < self._interval_s:
            return False
        self._last, self._passed_at = text, now
        return True
