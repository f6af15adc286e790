"""Trackers of the user's own: code that may raise anything, and must not end a training."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubebeast_runs.files.table_file import Value
from kubebeast_runs.trackers.tracker import Tracker

MakeTracker = Callable[[Path], Tracker]
"""Makes a tracker of the run in the given folder."""


class OwnTracker:
    """A tracker whose every error is an OSError, as `Tracker` requires."""

    def __init__(self, name: str, tracker: Any) -> None:
        """tracker: object with the methods of Tracker. Raises TypeError if it lacks one."""
        if missing := [method for method in ("begin", "log", "end") if not callable(getattr(tracker, method, None))]:
            raise TypeError(f"it has no {' and no '.join(missing)}")
        self.name = name
        self._tracker = tracker

    def begin(self, meta: Mapping[str, Any]) -> None:
        with _as_failed_write():
            self._tracker.begin(meta)

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        with _as_failed_write():
            self._tracker.log(step, values)

    def end(self, *, successful: bool) -> None:
        with _as_failed_write():
            self._tracker.end(successful=successful)


@contextmanager
def _as_failed_write() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
