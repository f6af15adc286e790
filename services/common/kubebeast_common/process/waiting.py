"""Waiting for the end of processes by their descriptors (pidfd_open(2)).

The end of a pipe does not prove the end of a process, because its forks keep its pipes open. This is also true for
the sentinels of multiprocessing, which are pipes.
"""

import contextlib
import os
import select
import sys

_LOOK_EVERY_MS = 1000.0


def wait_for_end(pid: int, timeout_s: float) -> None:
    """Blocks until a process, not necessarily a child, has ended, for at most timeout_s seconds.

    Returns at once if there is no such process, and on systems without pidfd_open: Linux before 5.3, macOS.
    """
    descriptor = _open(pid)
    if descriptor is None:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(timeout_s * 1000)
    finally:
        os.close(descriptor)


def wait_for_end_of_parent(pid: int, pipe: int | None = None) -> None:
    """Blocks until the parent process `pid` has ended, or until `pipe` is at its end: the file descriptor of a pipe
    that the parent holds open and never writes to.
    """
    poll = select.poll()
    if pipe is not None:
        poll.register(pipe, select.POLLIN)
    descriptor = _open(pid)
    if descriptor is not None:
        poll.register(descriptor, select.POLLIN)
    try:
        while os.getppid() == pid:  # otherwise it has ended, and its pid may be reused
            for ready, event in poll.poll(_LOOK_EVERY_MS):
                if ready == pipe and not event & select.POLLNVAL:
                    return
                poll.unregister(ready)  # it has ended, or an environment has closed a foreign descriptor
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _open(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
