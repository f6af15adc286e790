"""Thread that keeps the options of coming episodes ready in a native pool."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

_PART = 8
"""Number of options that are chosen at a time."""
_POLL_MS = 100
"""Interval in milliseconds at which the thread checks for a stop."""


class OptionsPool(Protocol):
    """The queue of a pool, kubebeast_native.ActorPool."""

    def wait_options_room(self, timeout_ms: int) -> int | None: ...

    def push_episode_options(self, texts: Sequence[str]) -> None: ...


class OptionsFeed(threading.Thread):
    """A thread that fills the queue of a pool from `start` to `stop`.

    The first error of `draw` ends the thread, and `raise_error` raises it; environments then keep their options.
    """

    def __init__(self, pool: OptionsPool, draw: Callable[[int], Sequence[str]]) -> None:
        """`draw` returns the texts of that number of episodes; the thread calls it, and `fill` before the start."""
        super().__init__(name="episode-options", daemon=True)
        self._pool = pool
        self._draw = draw
        self._stopping = threading.Event()
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Fills the queue once, in the calling thread. Raises the errors of `draw`."""
        if (room := self._pool.wait_options_room(0)) is not None:
            self._pool.push_episode_options(self._draw(room))

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ends the thread and blocks until then. Idempotent. Close the pool after this call or during it, not before.

        Raises TimeoutError if `draw` takes longer.
        """
        self._stopping.set()
        if self.ident is not None:
            self.join(timeout_s)
        if self.is_alive():
            raise TimeoutError(f"the choice of options did not end within {timeout_s} s")

    def raise_error(self) -> None:
        """Raises the error that ended the thread, if there was one."""
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        """The thread's loop; called by `start`."""
        try:
            while not self._stopping.is_set():
                room = self._pool.wait_options_room(_POLL_MS)
                # In small parts: whoever answers the streams waits for the interpreter lock meanwhile.
                for first in range(0, room or 0, _PART):
                    self._pool.push_episode_options(self._draw(min(_PART, (room or 0) - first)))
        except BaseException as error:
            if not self._stopping.is_set():
                self._error = error
