"""The interface of a tracker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from kubebeast_runs.files.table_file import Value


class Tracker(Protocol):
    """A destination of the numbers of one run. After its construction, one thread calls it.

    Any method may raise OSError: the call is then counted as a failed write, and the run goes on without it.
    """

    @property
    def name(self) -> str:
        """Name in messages and in the count of failed writes."""

    def begin(self, meta: Mapping[str, Any]) -> None:
        """Begins the run, or continues it; `meta` is the content of meta.json."""

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        """Takes a row of logs.csv without its step; None for an unknown value."""

    def artifact(self, step: int, path: Path) -> None:
        """Takes the file of the newest weights, after a checkpoint was saved at `step`; a later save replaces it."""

    def end(self, *, successful: bool) -> None:
        """Closes the tracker; idempotent. Also called for a run that has not begun."""


class PatientTracker(Tracker, Protocol):
    """A tracker that may block and raise anything: it has a thread of its own, which the run does not wait for."""

    @property
    def patience_s(self) -> float:
        """Longest wait of the run for the last calls, in seconds. A call that takes longer is reported."""

    @property
    def takes_artifacts(self) -> bool:
        """False if `artifact` is not to be called."""

    def abandon(self) -> None:
        """Gives up the call that blocks, if that is possible. Called by another thread, once, at the end."""
