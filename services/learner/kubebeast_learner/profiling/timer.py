"""Timer for periodic work in a loop that never sleeps."""

import time
from collections.abc import Callable

STEP_INTERVALS = 200
"""Equal parts of a run, for a timer by steps."""


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


class StepTimer:
    """A timer that is due STEP_INTERVALS times in `total_steps`, whatever the time."""

    def __init__(self, total_steps: int, step: Callable[[], int]) -> None:
        """step: returns the present number of steps."""
        self._interval = max(1, total_steps // STEP_INTERVALS)
        self._step = step
        self._due_at = step() + self._interval

    def is_due(self) -> bool:
        """Returns True if the interval is over, and starts the next one in that case."""
        step = self._step()
        if step < self._due_at:
            return False
        self._due_at = step + self._interval
        return True
