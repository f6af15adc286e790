"""Trackers of the user's own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kubebeast_runs.files.table_file import Value
from kubebeast_runs.trackers.tracker import PatientTracker

MakeTracker = Callable[[Path], PatientTracker]
"""Makes a tracker of the run in the given folder."""

PATIENCE_S = 30.0


class OwnTracker:
    """A tracker of the user's own: its methods may raise anything, and it may lack `artifact`."""

    patience_s = PATIENCE_S

    def __init__(self, name: str, tracker: Any) -> None:
        """tracker: object with the methods of Tracker. Raises TypeError if it lacks one."""
        if missing := [method for method in ("begin", "log", "end") if not callable(getattr(tracker, method, None))]:
            raise TypeError(f"it has no {' and no '.join(missing)}")
        self.name = name
        self.takes_artifacts = callable(getattr(tracker, "artifact", None))
        self._tracker = tracker

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._tracker.begin(meta)

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._tracker.log(step, values)

    def artifact(self, step: int, path: Path) -> None:
        self._tracker.artifact(step, path)

    def end(self, *, successful: bool) -> None:
        self._tracker.end(successful=successful)

    def abandon(self) -> None:
        """Does nothing: its thread ends with the process."""
