"""The interface of a tracker."""

from collections.abc import Mapping
from typing import Any, Protocol

from kubebeast_runs.files.table_file import Value


class Tracker(Protocol):
    """A destination of the numbers of one run, called by one thread.

    Any method may raise OSError: the call is then counted as a failed write, and the run goes on without it.
    """

    @property
    def name(self) -> str:
        """Name in messages and in the count of failed writes."""

    def begin(self, meta: Mapping[str, Any]) -> None:
        """Begins the run, or continues it; `meta` is the content of meta.json."""

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        """Takes a row of logs.csv without its step; None for an unknown value."""

    def end(self, *, successful: bool) -> None:
        """Closes the tracker; idempotent. Also called for a run that has not begun."""
