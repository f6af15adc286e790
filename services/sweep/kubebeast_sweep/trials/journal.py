"""The file of a sweep's trials (Optuna's JournalFileBackend): each change is a line at its end, a whole one or none."""

import logging
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages.journal import BaseJournalBackend, JournalFileBackend

from kubebeast_common.volume import is_full

RETRY_S = 1.0

logger = logging.getLogger(__name__)


class Journal(BaseJournalBackend):
    """The file, written by one process at a time. Not thread-safe."""

    def __init__(self, path: Path, stop: threading.Event) -> None:
        """Opens or begins the file, and removes the traces of a process that ended in the middle of a line.

        Raises OSError.
        """
        path.with_name(path.name + ".lock").unlink(missing_ok=True)
        path.touch()
        with open(path, "r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
        self._path, self._stop = path, stop
        self._file = JournalFileBackend(str(path))

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        return self._file.read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Adds lines. On a full volume, blocks until they fit or the stop; then raises OSError, and adds nothing."""
        is_waiting = False
        while True:
            size = self._path.stat().st_size
            try:
                return self._file.append_logs(logs)
            except OSError as error:
                os.truncate(self._path, size)
                if not is_full(error) or self._stop.is_set():
                    raise
                if not is_waiting:
                    logger.warning("%s: %s; waiting until it can be written", self._path, error.strerror)
                is_waiting = True
            self._stop.wait(RETRY_S)


class ReadOnlyJournal(BaseJournalBackend):
    """The file, which another process may write at this moment."""

    def __init__(self, path: Path) -> None:
        self._file = JournalFileBackend(str(path))

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        return self._file.read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        raise AssertionError("a reader writes nothing")
