"""Things that happen every so often in a loop that never sleeps."""

import time


class Timer:
    """Due every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_at = time.monotonic() + interval_s

    def is_due(self) -> bool:
        """Whether the interval is over; starts the next one if it is."""
        now = time.monotonic()
        if now < self._due_at:
            return False
        self._due_at = now + self._interval_s
        return True
