"""Retries after failures: delays, limits, and suppression of repeated log lines."""

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

STEADY_STEPS = 20
"""A failure after at least this number of steps resets the count of earlier failures."""


class Backoff:
    """Jittered exponential delays in seconds, drawn from the upper half of a range that doubles up to limit_s."""

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
    """Limit of failures after which an environment, or a process that hosts environments, is given up."""

    max_failures: int = 5
    """Number of failures within failure_window_s, each after fewer than STEADY_STEPS steps."""
    failure_window_s: float = 60.0
    """Length of the window in seconds."""


class Retries:
    """Retry state of an environment or process that may fail. Its methods never block."""

    def __init__(self, policy: FaultPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._failed_at: deque[float] = deque(maxlen=policy.max_failures)
        self._backoff = Backoff()
        self._retry_at = 0.0
        self.num_failures = 0

    def note_success(self) -> None:
        """Resets the count of failures and the delay."""
        self._failed_at.clear()
        self._backoff.reset()

    def note_failure(self, num_steps: int = 0) -> float | None:
        """Counts one failure. Returns the jittered delay until the next try in seconds; None to give up.

        num_steps is the number of steps since the previous failure.
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
        """True if the delay after the last failure is over."""
        return self._clock() >= self._retry_at


class Repetitions:
    """A filter of repeated texts: it passes a text that differs from the last one, or repeats it after interval_s."""

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
