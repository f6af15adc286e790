"""Notices on their way from the thread that polls to the training."""

import threading


class Notices:
    """The notices that a thread has found and the training has not taken yet. Thread-safe; nothing blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_new = 0
        self.num_failures = 0
        """Failed polls. Written by the thread that polls."""

    @property
    def is_new(self) -> bool:
        """True if `take` would return a notice."""
        return self._num_new > 0

    def add(self) -> None:
        with self._lock:
            self._num_new += 1

    def take(self) -> int:
        """Returns the number of notices since the last call."""
        with self._lock:
            num_new, self._num_new = self._num_new, 0
        return num_new
