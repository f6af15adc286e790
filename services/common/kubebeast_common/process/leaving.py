"""The end of a command, even if its environments left endless threads, hanging hooks or processes."""

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from kubebeast_common.process.waiting import wait_for_end_of_parent

INTERRUPTED = 128 + signal.SIGINT
"""Exit status after Ctrl-C."""
THREADS_GRACE_S = 1.0
HOOKS_GRACE_S = 5.0


def leave(status: int, last: Callable[[], None] = lambda: None) -> NoReturn:
    """Ends this process with an exit status. To be called in its main thread.

    Waits one second for non-daemon threads and five seconds for the hooks of atexit, then calls `last` and flushes
    standard output and error.
    """
    limit_s = THREADS_GRACE_S + HOOKS_GRACE_S
    threading.Thread(target=_end_after, args=(limit_s, status, last), name="leave", daemon=True).start()
    deadline = time.monotonic() + THREADS_GRACE_S
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
    atexit._run_exitfuncs()
    _end(status, last)


@contextlib.contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Context in which Ctrl-C ends the process at once without output. It is for imports, which would print a traceback
    or treat KeyboardInterrupt as their own failure. Has no effect outside the main thread, or if SIGINT is ignored.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, _end_interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave_with_parent(
    parent: int,
    grace_s: float,
    *,
    ask: Callable[[], None] = lambda: None,
    last: Callable[[], None] = lambda: None,
    pipe: int | None = None,
) -> None:
    """Starts a thread that ends this process after its `parent`: it waits for the end of the parent, calls `ask`, calls
    `last` grace_s seconds later, and exits with status 1. pipe: see wait_for_end_of_parent.
    """

    def follow() -> None:
        wait_for_end_of_parent(parent, pipe)
        ask()
        time.sleep(grace_s)  # the main thread may be in native code of an environment
        last()
        os._exit(1)

    threading.Thread(target=follow, name="follow-parent", daemon=True).start()


def _end_interrupted(number: int, frame: FrameType | None) -> NoReturn:
    _exit(INTERRUPTED)


def _end_after(limit_s: float, status: int, last: Callable[[], None]) -> None:
    time.sleep(limit_s)
    _end(status, last)


def _end(status: int, last: Callable[[], None]) -> NoReturn:
    last()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no reader; closed
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # output of C code
    _exit(status)


def _exit(status: int) -> NoReturn:
    """Ends the process, after Ctrl-C on a terminal by SIGINT, which a shell reports as status 130. Loops of a shell
    would continue after a command that exits with 130 by itself (https://www.cons.org/cracauer/sigint.html).
    """
    if status == INTERRUPTED and _is_in_foreground():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _is_in_foreground() -> bool:
    """Returns True if this process is in the foreground of a terminal, which sends it Ctrl-C."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
