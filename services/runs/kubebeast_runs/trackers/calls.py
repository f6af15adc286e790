"""Calls of trackers by the thread of a run, which never waits for a network."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kubebeast_common.user_code import message
from kubebeast_runs.files.table_file import Value
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.trackers.tracker import PatientTracker, Tracker

MAX_QUEUED = 256
"""Calls that wait for a tracker, at most: 21 minutes of rows at the default interval."""


class Calls(Protocol):
    """The calls of one tracker. Failures are counted, none is raised."""

    def begin(self, meta: Mapping[str, Any]) -> None: ...

    def log(self, step: int, values: Mapping[str, Value]) -> None: ...

    def artifact(self, step: int, path: Path) -> None: ...

    def end(self, *, successful: bool) -> None: ...

    def wait(self) -> None:
        """Blocks until the tracker has ended, or for its patience."""


class DirectCalls:
    """Calls of a tracker that writes local files, at once."""

    def __init__(self, tracker: Tracker, failures: WriteFailures) -> None:
        self._tracker = tracker
        self._tolerating = partial(failures.tolerating, tracker.name)

    def begin(self, meta: Mapping[str, Any]) -> None:
        with self._tolerating():
            self._tracker.begin(meta)

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        with self._tolerating():
            self._tracker.log(step, values)

    def artifact(self, step: int, path: Path) -> None:
        with self._tolerating():
            self._tracker.artifact(step, path)

    def end(self, *, successful: bool) -> None:
        with self._tolerating():
            self._tracker.end(successful=successful)

    def wait(self) -> None: ...


class QueuedCalls:
    """Calls of a tracker on a thread of its own, in order. Methods do not block, except for `wait`.

    If MAX_QUEUED calls wait, the oldest is dropped and counted as a failed write.
    """

    def __init__(self, tracker: PatientTracker, failures: WriteFailures) -> None:
        self._tracker, self._failures = tracker, failures
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        """Guards the fields below and `_waiting`."""
        self._called_at = math.inf
        self._is_ending = self._is_abandoned = False
        self._deadline = math.inf
        self._thread = threading.Thread(target=self._run, name=f"tracker {tracker.name}", daemon=True)

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._put(partial(self._tracker.begin, dict(meta)))

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._put(partial(self._tracker.log, step, values))

    def artifact(self, step: int, path: Path) -> None:
        if self._tracker.takes_artifacts:
            self._put(partial(self._tracker.artifact, step, path))

    def end(self, *, successful: bool) -> None:
        self._deadline = time.monotonic() + self._tracker.patience_s
        self._put(partial(self._tracker.end, successful=successful), is_last=True)

    def wait(self) -> None:
        try:
            self._thread.join(max(0.0, self._deadline - time.monotonic()))
        finally:
            if self._thread.is_alive():
                self._abandon()

    def _put(self, call: Callable[[], None], *, is_last: bool = False) -> None:
        name, patience_s = self._tracker.name, self._tracker.patience_s
        with self._changed:
            is_full = len(self._waiting) >= MAX_QUEUED
            if is_full:
                self._waiting.popleft()
            self._waiting.append(call)
            self._is_ending = is_last
            is_stuck = time.monotonic() - self._called_at > patience_s
            self._changed.notify()
            if self._thread.ident is None:
                self._thread.start()
        if is_full:
            self._failures.note(name, OSError(f"{MAX_QUEUED} rows wait for it, and older ones are dropped"))
        elif is_stuck:
            self._failures.note(name, OSError(f"no answer for {patience_s:.0f} s"), num_writes=0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._called_at = math.inf
                if not self._waiting and self._is_ending:
                    return
                self._changed.wait_for(lambda: self._waiting)
                call = self._waiting.popleft()
                self._called_at = time.monotonic()
            error = _error_of(call)
            with self._changed:
                is_behind, is_abandoned = bool(self._waiting), self._is_abandoned
            if error is not None and not is_abandoned:
                self._failures.note(self._tracker.name, error)
            elif error is None and not is_behind:
                self._failures.note_success(self._tracker.name)

    def _abandon(self) -> None:
        """Drops the calls that are left, and counts them and the one that blocks."""
        with self._changed:
            num_left = 1 + len(self._waiting)
            self._waiting.clear()
            self._is_abandoned = True
        reason = f"its last rows were not taken within {self._tracker.patience_s:.0f} s"
        self._failures.note(self._tracker.name, OSError(reason), num_left)
        self._tracker.abandon()


def _error_of(call: Callable[[], None]) -> OSError | None:
    try:
        call()
    except OSError as error:
        return error
    except BaseException as error:  # a library may raise SystemExit and KeyboardInterrupt, too
        return OSError(f"{type(error).__name__}: {message(error)}")
    return None
