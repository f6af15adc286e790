"""Failed writes to the files and trackers of a run: counted, logged once, and once more if they succeed again."""

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

OUT_LOG = "out.log"


class WriteFailures:
    """A counter of failed writes: a full, read-only or lost volume costs a run rows of its logs, not the training.

    Each file has one writer. `report` and `conclude` are for one thread, all other methods for any.
    """

    def __init__(self, folder: Path, files: Iterable[str] = ()) -> None:
        """`files` are counted from 0 on; others appear with their first failure."""
        self._folder = folder
        self.counts = dict.fromkeys(files, 0)
        """Failed writes since the process started, by file name. Readable from any thread."""
        self._lock = threading.Lock()
        self._failing: dict[str, OSError] = {}
        self._reported: dict[str, int] = {}
        self._is_outage = False

    @contextlib.contextmanager
    def tolerating(self, name: str) -> Iterator[None]:
        """Wraps a write to the file `name` of the run: an OSError is counted and suppressed."""
        try:
            yield
        except OSError as error:
            self.note(name, error)
        else:
            self.note_success(name)

    def note(self, name: str, error: OSError, num_writes: int = 1) -> None:
        """Counts failed writes to `name`; with 0, it only marks the beginning of an outage."""
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + num_writes
            # Without a message there is no write to the log, so it cannot end an outage.
            if name != OUT_LOG:
                self._failing[name] = error

    def note_success(self, name: str) -> None:
        """Ends an outage of `name`."""
        with self._lock:
            self._failing.pop(name, None)

    def report(self) -> None:
        """Logs the beginning and the end of an outage, once each."""
        with self._lock:
            failing = next(iter(self._failing.items()), None)
        if failing is not None and not self._is_outage:
            name, error = failing
            text = "%s is not written: %s; the run goes on without, until it can be written again"
            logger.warning(text, self._folder / name, error.strerror or error)
        elif failing is None and self._is_outage:
            logger.warning("%s can be written again; failed writes: %s", self._folder, self._unreported())
        self._is_outage = failing is not None

    def conclude(self) -> None:
        """Reports for the last time: an outage ends with the run."""
        self.report()
        if self._is_outage and (failed := self._unreported()):
            logger.warning("failed writes until the end of the run: %s", failed)

    def _unreported(self) -> str:
        """Returns the failures of the outage as text, by file."""
        with self._lock:
            counts = dict(self.counts)
        failed = {name: count - self._reported.get(name, 0) for name, count in counts.items()}
        self._reported = counts
        return ", ".join(f"{count} of {name}" for name, count in failed.items() if count)
