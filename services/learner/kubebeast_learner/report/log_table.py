"""All columns of a run's logs.csv, in the layout of TorchBeast's FileWriter.

The file may be one that a run still writes, that a killed run left, or that grew new columns on the way.
"""

import contextlib
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LogTable:
    """N rows that no resume went back behind: a killed run repeats its steps since the last checkpoint."""

    steps: Values
    """[N], env-steps, increasing."""
    columns: dict[str, Values]
    """[N] each, NaN where a row has no number."""
    episode_returns: list[tuple[float, ...]]
    """[N], of the episodes since the row before; empty tuples where the log does not tell."""

    def column(self, name: str) -> Values | None:
        """The column where it has a finite number at all."""
        values = self.columns.get(name)
        return values if values is not None and np.isfinite(values).any() else None

    def newest(self, name: str) -> float | None:
        """The newest finite number of a column."""
        values = self.column(name)
        return None if values is None else float(values[np.isfinite(values)][-1])


def read_log(folder: Path) -> LogTable:
    """Reads folder/logs.csv. Without a row where there is no file, or nothing in it that can be read."""
    rows = _rows(folder / "logs.csv")
    steps = np.array([_number(row["step"]) for row in rows], dtype=np.float64)
    kept = _not_undone(steps)
    rows = [rows[index] for index in kept]
    names = sorted({name for row in rows for name in row} - {"step", "episode_returns"})
    return LogTable(
        steps=steps[kept],
        columns={name: np.array([_number(row.get(name)) for row in rows], dtype=np.float64) for name in names},
        episode_returns=[_numbers(row.get("episode_returns")) for row in rows],
    )


def _rows(path: Path) -> list[dict[str, str]]:
    """Rows that have a step; a line "# name,name,..." names the columns from there on."""
    rows: list[dict[str, str]] = []
    names: list[str] = []
    with contextlib.suppress(OSError, csv.Error), open(path, newline="", encoding="utf-8", errors="replace") as file:
        whole = (line for line in file if line.endswith("\n"))  # the newest line may be half written
        for fields in csv.reader(whole):
            if fields and fields[0].startswith("# "):
                names = [fields[0].removeprefix("# "), *fields[1:]]
            elif len(fields) == len(names):
                rows.append(dict(zip(names, fields, strict=True)))
    return [row for row in rows if np.isfinite(_number(row.get("step")))]


def _not_undone(steps: Values) -> list[int]:
    """Rows before which no later row starts again."""
    if not steps.size:
        return []
    later = np.append(np.minimum.accumulate(steps[::-1])[::-1][1:], np.inf)
    return [int(index) for index in np.flatnonzero(steps < later)]


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _numbers(text: str | None) -> tuple[float, ...]:
    """The finite numbers of a tuple's text, e.g. "(1.0, 21.0)"."""
    numbers = (_number(part.strip()) for part in (text or "").strip("()").split(","))
    return tuple(number for number in numbers if np.isfinite(number))
