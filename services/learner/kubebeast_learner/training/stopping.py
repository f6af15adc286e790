"""Signals that end a process when it is ready to."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from kubebeast_common import log

STDERR = 2


@contextlib.contextmanager
def stop_on_signals(handler: logging.Handler, promise: str) -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second one raises KeyboardInterrupt.

    handler: who formats the notice. promise: what it says will happen.
    """
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        text = f"{signal.Signals(number).name}: {promise}; once more to abort"
        line = log.line(__name__, text, handler.format)
        start = "\n" if os.isatty(STDERR) else ""  # below the table, and behind the terminal's ^C
        # Not the logger: it raises where the signal came in the middle of another write to the same stream.
        with contextlib.suppress(OSError):
            os.write(STDERR, f"{start}{line}\n".encode())

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, former in before.items():
            signal.signal(number, former)
