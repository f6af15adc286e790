"""When what failed is tried again, when it is given up, and which failures are worth a line in the log."""

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

STEADY_STEPS = 20
"""What fails after so many steps is worth another try: failures before it do not count any more."""


class Backoff:
    """Jittered exponential delays in seconds: drawn from the upper half of a range that doubles up to the limit."""

    def __init__(self, first_s: float = 0.25, limit_s: float = 8.0) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self.tries = 0

    def reset(self) -> None:
        self.tries = 0

    def next_delay_s(self) -> float:
        ceiling = min(self._limit_s, self._first_s * 2.0 ** min(self.tries, 32))
        self.tries += 1
        return random.uniform(ceiling / 2, ceiling)


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultPolicy:
    """When an environment, or a process that hosts some, is given up."""

    max_failures: int = 5
    """So many failures ..."""
    failure_window_s: float = 60.0
    """... within so many seconds, each after fewer than STEADY_STEPS steps."""


class Retries:
    """Of one thing that fails now and then. Nothing here waits."""

    def __init__(self, policy: FaultPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._failed_at: deque[float] = deque(maxlen=policy.max_failures)
        self._backoff = Backoff()
        self._retry_at = 0.0
        self.num_failures = 0

    def note_success(self) -> None:
        """It has done what it is for: its failures so far do not count any more."""
        self._failed_at.clear()
        self._backoff.reset()

    def note_failure(self, num_steps: int = 0) -> float | None:
        """Counts one failure. Seconds until the next try, with a jittered back-off; None: it is given up.

        num_steps: made since the failure before.
        """
        now, window_s = self._clock(), self._policy.failure_window_s
        if num_steps >= STEADY_STEPS or (self._failed_at and now - self._failed_at[-1] > window_s):
            self.note_success()
        self.num_failures += 1
        self._failed_at.append(now)
        if len(self._failed_at) == self._policy.max_failures and now - self._failed_at[0] <= window_s:
            return None
        delay_s = self._backoff.next_delay_s()
        self._retry_at = now + delay_s
        return delay_s

    @property
    def is_due(self) -> bool:
        """Whether the wait after the last failure is over."""
        return self._clock() >= self._retry_at


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
