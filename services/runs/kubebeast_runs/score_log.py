"""Writer of the scores of a run's played checkpoints: eval.csv or eval-<name>.csv in its folder, and TensorBoard."""

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
from kubebeast_runs.parts import evaluation
from kubebeast_runs.scores import read_scores
from kubebeast_runs.storage.local import LocalStorage

MAX_UNWRITTEN = 10_000
"""Maximum number of rows, the newest ones, that are kept while they cannot be written."""


class ScoreLog:
    """A table with one row per played checkpoint, also sent to TensorBoard. Not thread-safe; a context manager.

    Rows that cannot be written are kept and retried; TensorBoard's numbers are dropped.
    """

    def __init__(self, folder: Path, evaluator: str = "") -> None:
        """Opens the table of an evaluator, "" for the one without a name, and continues after its last row.

        Raises OSError if the folder takes no file, and ConfigError if another process of this name plays the run.
        """
        part = evaluation(evaluator)
        self._name, self._events_name = part.first_file, f"tensorboard/{part.name}"
        self._lock = lock_run(folder, part)
        self._table = TableFile(folder / self._name)
        # A separate folder: of two event files in one, TensorBoard keeps reading only the one that began last.
        self._events = EventFile(folder / self._events_name)
        self._unwritten: deque[Mapping[str, Value]] = deque(maxlen=MAX_UNWRITTEN)
        self.failures = WriteFailures(folder, (self._name, self._events_name))
        steps = read_scores(LocalStorage(folder), evaluator).steps
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
        with self.failures.tolerating(self._events_name):
            self._events.add(finite, step)
        self.write()

    def write(self) -> None:
        """Writes the pending rows, if possible."""
        with self.failures.tolerating(self._name):
            while self._unwritten:
                self._table.append(self._unwritten[0])
                self._unwritten.popleft()
        self.failures.report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.write()
        for name, close in {self._name: self._table.close, self._events_name: self._events.close}.items():
            with self.failures.tolerating(name):
                close()
        with contextlib.suppress(OSError):
            self._lock.close()
