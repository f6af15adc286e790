"""Ends a process whose environments compute for too long."""

import faulthandler
import math
import os
import signal
import sys
import time
from multiprocessing.process import BaseProcess

from kubebeast_envserver.rows.stream_status import StreamStatus

_TRACEBACK_S = 0.5
"""For a process to say where it hangs, before it is killed."""


def say_where_when_asked() -> None:
    """In the process that is watched: it writes to standard error where it hangs, also inside C code."""
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__ or 2)


def end_process(process: BaseProcess, timeout_s: float) -> None:
    """Blocks until the process has ended, which it is made to after timeout_s seconds."""
    process.join(timeout_s)
    process.kill()
    process.join()


class HangWatch:
    """Over one process after the other. For one thread; nothing here blocks."""

    def __init__(self, timeout_s: float) -> None:
        """timeout_s: the longest that environments may compute at a time."""
        self._timeout_s = timeout_s
        self._kill_at = math.inf
        self._is_asked = False

    @property
    def is_killing(self) -> bool:
        """Whether the process was found hanging."""
        return self._kill_at < math.inf

    def forget(self) -> None:
        """Another process is watched from now on."""
        self._kill_at, self._is_asked = math.inf, False

    def look(self, process: BaseProcess, status: StreamStatus) -> bool:
        """Whether `process`, which keeps its books in `status`, is now found hanging.

        The next look makes it say where, so that what the caller logs is not torn by a traceback; a later one kills it.
        """
        busy_since, now = status.busy_since, time.monotonic()
        if process.pid is None or busy_since == 0.0:
            self.forget()
        elif self.is_killing:
            if not self._is_asked:
                self._is_asked, self._kill_at = True, now + _TRACEBACK_S
                os.kill(process.pid, signal.SIGUSR1)
            elif now >= self._kill_at:
                process.kill()
        elif now - busy_since > self._timeout_s:
            status.count_failure("hang")
            self._kill_at = now
            return True
        return False
