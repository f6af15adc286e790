"""The terminal of a process that redraws a table in place."""

import contextlib
import io
import os
import termios
from collections.abc import Iterator
from typing import IO

_LOCAL_FLAGS = 3
"""Index of the local flags in the attributes (https://docs.python.org/3/library/termios.html)."""


@contextlib.contextmanager
def without_echo(stream: IO[str]) -> Iterator[None]:
    """Context in which the terminal of `stream` does not print the keys that are pressed, such as the ^C of Ctrl-C.

    They would move the cursor, and a table that is redrawn in place would leave lines behind. The keys still have their
    effect. Does nothing if `stream` is no terminal, or if the process runs in its background.
    """
    try:
        descriptor = stream.fileno()
        is_ours = os.isatty(descriptor) and _is_foreground(descriptor)
    except (io.UnsupportedOperation, OSError):
        is_ours = False
    if not is_ours:
        yield
        return
    before = termios.tcgetattr(descriptor)
    silent = list(before)
    silent[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
            if _is_foreground(descriptor):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _is_foreground(descriptor: int) -> bool:
    """Returns False if the terminal belongs to another process group: to change it would stop this process."""
    return os.tcgetpgrp(descriptor) == os.getpgrp()
