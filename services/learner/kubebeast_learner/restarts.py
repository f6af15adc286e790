"""When a process of this machine that died is started again, and when it is given up."""

import time
from collections.abc import Callable

MAX_QUICK_DEATHS = 3
"""A process that dies this often in a row, each time soon after its start, will not come up."""
QUICK_DEATH_S = 60.0
MAX_BACK_OFF_S = 30.0


class RestartPolicy:
    """Exponential back-off for one process: 1, 2, 4, ... seconds, anew after a life longer than QUICK_DEATH_S."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_at = 0.0
        self._restart_at = 0.0
        self._quick_deaths = 0
        self.num_starts = 0

    def note_start(self) -> None:
        self._started_at = self._clock()
        self.num_starts += 1

    def note_death(self) -> float | None:
        """Seconds until the process is due again; None when it is given up."""
        now = self._clock()
        self._quick_deaths = self._quick_deaths + 1 if now - self._started_at < QUICK_DEATH_S else 1
        if self._quick_deaths >= MAX_QUICK_DEATHS:
            return None
        wait_s: float = min(MAX_BACK_OFF_S, 2.0 ** (self._quick_deaths - 1))
        self._restart_at = now + wait_s
        return wait_s

    @property
    def is_due(self) -> bool:
        """Whether the wait after the last death is over."""
        return self._clock() >= self._restart_at
