"""Timer for periodic work in a loop that never sleeps."""

import time


class Timer:
    """A timer that is due every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_at = time.monotonic() + interval_s

    def is_due(self) -> bool:
        """Returns True if the interval is over, and starts the next one in that case."""
        now = time.monotonic()
        if now < self._due_at:
            return False
        self._due_at = now + self._interval_s
        return True

    def hasten(self, wait_s: float) -> None:
        """Makes this interval end in at most `wait_s` seconds."""
        self._due_at = min(self._due_at, time.monotonic() + wait_s)
