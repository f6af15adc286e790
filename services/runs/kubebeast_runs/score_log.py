"""Writer of the scores of a run's played checkpoints: eval.csv in its folder, and TensorBoard."""

import contextlib
import math
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kubebeast_runs.files.events import EventFile
from kubebeast_runs.files.table_file import TableFile, Value
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.lock import lock_run
from kubebeast_runs.scores import NAME, read_scores

MAX_UNWRITTEN = 10_000
"""Maximum number of rows, the newest ones, that are kept while they cannot be written."""


class ScoreLog:
    """A table with one row per played checkpoint, also sent to TensorBoard. Not thread-safe; a context manager.

    Rows that cannot be written are kept and retried; TensorBoard's numbers are dropped.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the table and continues after its last row.

        Raises OSError if the folder takes no file, and ConfigError if another process plays the run.
        """
        self._lock = lock_run(folder, "follows")
        self._table = TableFile(folder / NAME)
        # A separate folder: of two event files in one, TensorBoard keeps reading only the one that began last.
        self._events = EventFile(folder / "tensorboard" / "eval")
        self._unwritten: deque[Mapping[str, Value]] = deque(maxlen=MAX_UNWRITTEN)
        self.failures = WriteFailures(folder, (NAME, "tensorboard/eval"))
        steps = read_scores(folder).steps
        self.newest_step = int(steps[-1]) if steps else None
        """Env-steps of the checkpoint that was played last."""

    @property
    def is_whole(self) -> bool:
        """True if every row is in the file."""
        return not self._unwritten

    def add(self, step: int, numbers: Mapping[str, float], facts: Mapping[str, Value]) -> None:
        """Appends one row; only `numbers` go to TensorBoard."""
        self._unwritten.append({"step": step, **numbers, **facts})
        self.newest_step = step
        finite = {f"eval/{name}": number for name, number in numbers.items() if math.isfinite(number)}
        with self.failures.tolerating("tensorboard/eval"):
            self._events.add(finite, step)
        self.write()

    def write(self) -> None:
        """Writes the pending rows, if possible."""
        with self.failures.tolerating(NAME):
            while self._unwritten:
                self._table.append(self._unwritten[0])
                self._unwritten.popleft()
        self.failures.report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.write()
        for name, close in {NAME: self._table.close, "tensorboard/eval": self._events.close}.items():
            with self.failures.tolerating(name):
                close()
        with contextlib.suppress(OSError):
            self._lock.close()
