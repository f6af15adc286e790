"""The tracker that writes event files for TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubebeast_runs.files.events import EventFile
from kubebeast_runs.files.table_file import Value
from kubebeast_runs.trackers.tags import tagged_numbers


class TensorBoardTracker:
    """The finite numbers of each row in grouped tags, and the settings as hyperparameters."""

    name = "tensorboard"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / self.name
        self._events = EventFile(self._folder)

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._events = EventFile(self._folder, meta["args"])

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._events.add(tagged_numbers(values), step)

    def artifact(self, step: int, path: Path) -> None: ...

    def end(self, *, successful: bool) -> None:
        self._events.close()
