"""What the checkpoints of a run scored when they were played: eval.csv in its folder, beside logs.csv."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kubebeast_learner.run.events import EventFile
from kubebeast_learner.run.lock import lock_run
from kubebeast_learner.run.log_table import NO_LOG, LogTable, read_table
from kubebeast_learner.run.table_file import TableFile, Value

NAME = "eval.csv"


class ScoreLog:
    """A row a played checkpoint, and its numbers for TensorBoard. For one thread; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Goes on behind what is there. OSError when it cannot be written, ConfigError when another process does."""
        self._lock = lock_run(folder, "follows")
        self._table = TableFile(folder / NAME)
        # A folder of its own: of two files in one, TensorBoard goes on reading the one that was begun last.
        self._events = EventFile(folder / "tensorboard" / "eval")
        steps = read_scores(folder).steps
        self.newest_step = int(steps[-1]) if steps.size else None
        """Env-steps of the checkpoint that was played last."""

    def add(self, step: int, numbers: Mapping[str, float], facts: Mapping[str, Value]) -> None:
        """Appends one row; only the numbers go to TensorBoard. OSError when the disk is full."""
        self._table.append({"step": step, **numbers, **facts})
        finite = {f"eval/{name}": number for name, number in numbers.items() if math.isfinite(number)}
        self._events.add(finite, step)
        self.newest_step = step

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._table.close()
        self._events.close()
        self._lock.close()


def read_scores(folder: Path) -> LogTable:
    """Reads folder/eval.csv: columns mean_return, std_return and more; empty where there is none."""
    try:
        return read_table(folder / NAME)
    except OSError:
        return NO_LOG
