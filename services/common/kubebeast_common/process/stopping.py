"""Signals that ask a process to end when it is ready."""

import contextlib
import logging
import math
import queue
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from kubebeast_common.process.leaving import INTERRUPTED

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STEP_S = 1.0


class Stop(threading.Event):
    """An event that is set if a stop was requested."""

    def __init__(self, status: int = 0) -> None:
        super().__init__()
        self.number: signal.Signals | None = None
        """The first signal that requested a stop."""
        self.status = status
        """Exit status after SIGTERM or SIGHUP."""

    def wait_for_signal(self, longest_s: float = math.inf) -> None:
        """Blocks until the stop, or for longest_s seconds, in steps: Python handles a signal that arrives just before a
        wait after the wait.
        """
        deadline = time.monotonic() + longest_s
        while not self.wait(min(_STEP_S, max(0.0, deadline - time.monotonic()))) and time.monotonic() < deadline:
            pass

    @property
    def exit_status(self) -> int:
        """Exit status of a process that ends well: 130 after Ctrl-C, which also ends a shell's loop."""
        if self.number is None:
            return 0
        return INTERRUPTED if self.number == signal.SIGINT else self.status


@contextlib.contextmanager
def stop_on_signals(promise: str, status: int = 0) -> Iterator[Stop]:
    """Yields an event that SIGINT, SIGTERM and SIGHUP set; a second signal raises KeyboardInterrupt.

    SIGHUP stays ignored if it already is, as with nohup. `promise` is the consequence of the signal, for the log, and
    `status` the exit status after SIGTERM and SIGHUP. Must be called in the main thread.
    """
    stop = Stop(status)
    asked: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.number is not None:
            raise KeyboardInterrupt
        stop.number = signal.Signals(number)
        asked.put(stop.number)  # a handler may interrupt its thread within any lock except this queue's

    def note() -> None:
        number = asked.get()
        if number is not None:
            stop.set()
            logger.info("%s: %s; once more to abort", number.name, promise)

    noting = threading.Thread(target=note, name="signals", daemon=True)
    noting.start()
    handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN or number != signal.SIGHUP]
    before = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield stop
    finally:
        for number, former in before.items():
            signal.signal(number, former)
        asked.put(None)
        noting.join()
