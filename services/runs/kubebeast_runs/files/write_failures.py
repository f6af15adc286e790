"""Failed writes to the files of a run: counted, logged once, and once more if they succeed again."""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

OUT_LOG = "out.log"


class WriteFailures:
    """A counter of failed writes: a full, read-only or lost volume costs a run rows of its logs, not the training.

    Each file has one writer, on any thread; `report` is for one thread.
    """

    def __init__(self, folder: Path, files: Iterable[str] = ()) -> None:
        """`files` are counted from 0 on; others appear with their first failure."""
        self._folder = folder
        self.counts = dict.fromkeys(files, 0)
        """Failed writes since the process started, by file name. Readable from any thread."""
        self._failing: dict[str, OSError] = {}
        self._reported: dict[str, int] = {}
        self._is_outage = False

    @contextlib.contextmanager
    def tolerating(self, name: str) -> Iterator[None]:
        """Wraps a write to the file `name` of the run: an OSError is counted and suppressed."""
        try:
            yield
        except OSError as error:
            self.counts[name] = self.counts.get(name, 0) + 1
            # Without a message there is no write to the log, so it cannot end an outage.
            if name != OUT_LOG:
                self._failing[name] = error
        else:
            self._failing.pop(name, None)

    def report(self) -> None:
        """Logs the beginning and the end of an outage, once each."""
        failing = next(iter(self._failing.items()), None)
        if failing is not None and not self._is_outage:
            name, error = failing
            text = "%s is not written: %s; the run goes on without, until it can be written again"
            logger.warning(text, self._folder / name, error.strerror or error)
        elif failing is None and self._is_outage:
            failed = {name: count - self._reported.get(name, 0) for name, count in self.counts.items()}
            listed = ", ".join(f"{count} of {name}" for name, count in failed.items() if count)
            logger.warning("%s can be written again; failed writes: %s", self._folder, listed)
            self._reported = dict(self.counts)
        self._is_outage = failing is not None
