"""How long to wait before the next try."""

import random


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
