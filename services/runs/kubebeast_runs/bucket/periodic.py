"""Threads that write to a bucket now and then."""

import logging
import threading
from collections.abc import Callable

from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.files.write_failures import WriteFailures

logger = logging.getLogger(__name__)


class Periodic:
    """Calls a function at intervals on a thread of its own, which ends with the process in any case.

    An OSError is a failed write, and the next call tries again. A LeaseLostError ends the calls.
    """

    def __init__(self, name: str, interval_s: float, call: Callable[[], None], failures: WriteFailures) -> None:
        """name: that of the thread, and of its failed writes."""
        self._name, self._interval_s, self._call, self._failures = name, interval_s, call, failures
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after its present call. Blocks."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                with self._failures.tolerating(self._name):
                    self._call()
            except LeaseLostError:
                return  # whoever trains finds out at its next check
            except Exception:
                logger.exception("%s failed", self._name)
