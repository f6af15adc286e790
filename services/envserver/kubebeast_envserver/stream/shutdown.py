"""A planned end, asked for by SIGTERM or SIGINT."""

import atexit
import os
import queue
import signal
from collections.abc import Callable
from types import FrameType


class Shutdown:
    """Remembers the request and wakes whoever waits.

    A signal handler may interrupt its own thread inside any lock, so this uses nothing but SimpleQueue, whose put is
    reentrant (https://docs.python.org/3/library/queue.html#simplequeue-objects).
    """

    def __init__(self) -> None:
        self._requested = False
        self.on_request: Callable[[], None] | None = None
        """Called at the request; must be reentrant."""
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_requested(self) -> bool:
        return self._requested

    def request(self) -> None:
        """Asks for the end; from any thread, or a signal handler."""
        self._requested = True
        self._wake.put(None)
        if self.on_request is not None:
            self.on_request()

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks until the end is asked for, at most timeout_s seconds; returns whether it is."""
        if not self._requested:
            try:
                self._wake.get(timeout=timeout_s)
            except queue.Empty:
                return self._requested
        return True

    def install(self, grace_s: float) -> None:
        """Handles SIGTERM and SIGINT; the process exits with 0 at the latest grace_s seconds after the first one.

        Half-way the request is repeated, for those who wait for an environment that hangs. Main thread only.
        """

        def handle(signum: int, frame: FrameType | None) -> None:
            if not self._requested:
                signal.setitimer(signal.ITIMER_REAL, grace_s / 2)
            self.request()

        def repeat(signum: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGALRM, lambda signum, frame: os._exit(0))
            signal.setitimer(signal.ITIMER_REAL, grace_s / 2)
            self.request()

        signal.signal(signal.SIGALRM, repeat)
        # Python takes its handlers away before it has ended; a timer that is still set would then kill the process.
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, handle)
