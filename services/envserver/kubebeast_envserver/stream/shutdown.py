"""A planned shutdown, requested by SIGTERM, SIGINT or SIGHUP."""

import atexit
import os
import queue
import signal
from collections.abc import Callable
from types import FrameType

from kubebeast_common.process.leaving import INTERRUPTED


class Shutdown:
    """Request of a shutdown; it wakes the threads that wait for it.

    A signal handler may interrupt its own thread inside any lock, so the class uses only SimpleQueue, in which put is
    reentrant (https://docs.python.org/3/library/queue.html#simplequeue-objects).
    """

    def __init__(self) -> None:
        self._requested = False
        self.is_interrupted = False
        """True if Ctrl-C requested the shutdown."""
        self.on_request: Callable[[], None] | None = None
        """Called at the request; must be reentrant."""
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_requested(self) -> bool:
        return self._requested

    def request(self) -> None:
        """Requests the shutdown; from any thread, or a signal handler."""
        self._requested = True
        self._wake.put(None)
        if self.on_request is not None:
            self.on_request()

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks until the shutdown is requested, at most timeout_s seconds; returns True if it is."""
        if not self._requested:
            try:
                self._wake.get(timeout=timeout_s)
            except queue.Empty:
                return self._requested
        return True

    def install(self, grace_s: float, last: Callable[[], None] = lambda: None) -> None:
        """Handles SIGTERM, SIGINT and, unless it is ignored as under nohup, SIGHUP. Main thread only.

        The process calls `last` and exits at the latest grace_s seconds after the first signal, with status 0, or 130
        after SIGINT. Half-way, the request is repeated, for code that waits for an environment that hangs; further
        signals repeat nothing.
        """

        def handle(signum: int, frame: FrameType | None) -> None:
            self.is_interrupted |= signum == signal.SIGINT
            if not self._requested:
                signal.setitimer(signal.ITIMER_REAL, grace_s / 2)
                self.request()

        def give_up(signum: int, frame: FrameType | None) -> None:
            last()
            os._exit(INTERRUPTED if self.is_interrupted else 0)

        def repeat(signum: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGALRM, give_up)
            signal.setitimer(signal.ITIMER_REAL, grace_s / 2)
            self.request()

        signal.signal(signal.SIGALRM, repeat)
        # Python removes its handlers before it has ended; a timer that is still set would then kill the process.
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                signal.signal(signum, handle)
