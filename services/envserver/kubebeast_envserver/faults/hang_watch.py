"""Watch that kills a process if its environments compute for too long."""

import faulthandler
import math
import os
import signal
import sys
import time
from multiprocessing.process import BaseProcess

from kubebeast_common.process.waiting import wait_for_end
from kubebeast_envserver.rows.stream_status import StreamStatus

_TRACEBACK_S = 0.5
"""Seconds in which a process may print its traceback before it is killed."""


def say_where_when_asked() -> None:
    """Makes this process, the watched one, print its traceback to standard error on SIGUSR1, even from C code."""
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__ or 2)


def end_process(process: BaseProcess, timeout_s: float) -> None:
    """Blocks until the process has ended, and kills it after timeout_s seconds."""
    if process.pid is not None and process.exitcode is None:
        wait_for_end(process.pid, timeout_s)
    process.kill()
    process.join()


class HangWatch:
    """Watch over one process after the other. For one thread; no method blocks."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s` is the longest time that environments may compute without a pause."""
        self._timeout_s = timeout_s
        self._kill_at = math.inf
        self._is_asked = False

    @property
    def is_killing(self) -> bool:
        """True if the process was found hanging."""
        return self._kill_at < math.inf

    def forget(self) -> None:
        """Resets the watch for another process."""
        self._kill_at, self._is_asked = math.inf, False

    def look(self, process: BaseProcess, status: StreamStatus) -> bool:
        """Returns True if `process`, which records its state in `status`, is found hanging by this call.

        The next call makes it print its traceback, which would otherwise interleave with a log line of the caller; a
        later one kills it.
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
