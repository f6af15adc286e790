"""Single key presses from the terminal."""

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator

NextKey = Callable[[float], str]
"""Blocks for at most the given seconds and returns the pressed key; "" if there was none."""


@contextlib.contextmanager
def keys() -> Iterator[NextKey | None]:
    """Yields a reader of single keys, without echo; None if standard input is no terminal.

    The terminal is restored afterwards. Ctrl-C remains a signal.
    """
    if not sys.stdin.isatty():
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def next_key(timeout_s: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, timeout_s))
        typed = os.read(descriptor, 64) if ready else b""
        if ready and not typed:  # the terminal is gone and would be ready forever
            time.sleep(max(0.0, timeout_s))
        return typed[:1].decode("ascii", errors="ignore")

    try:
        tty.setcbreak(descriptor)
        yield next_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
