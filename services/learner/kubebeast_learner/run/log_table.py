"""All columns of a table in a run's folder, such as logs.csv, in the layout of TorchBeast's FileWriter.

The file may be one that a run still writes, that a killed run left, that grew new columns on the way or is damaged.
"""

import csv
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Values = NDArray[np.float64]

ELAPSED = "elapsed_s"
"""Column with the time that a process has trained, which starts again with every process."""
PAUSE_S = 60.0
PAUSE_INTERVALS = 10
"""Without that column, a gap that is longer than PAUSE_S and than so many usual intervals is a pause, not training."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LogTable:
    """N rows that no resume went back behind: a killed run repeats its steps since the last checkpoint."""

    steps: Values
    """[N], env-steps, increasing."""
    hours: Values
    """[N], of training until the row, repeated steps included and pauses between two processes not. Where the log does
    not tell, as TorchBeast's, it counts from the first row."""
    steps_per_second: float | None
    """Mean over that time; None where there is none."""
    columns: dict[str, Values]
    """[N] each, NaN where a row has no number."""
    episode_returns: list[tuple[float, ...]]
    """[N], of the episodes since the row before; empty tuples where the log does not tell."""
    has_episodes: bool
    """Whether the log tells of single episodes."""

    def column(self, name: str) -> Values | None:
        """The column where it has a finite number at all."""
        values = self.columns.get(name)
        return values if values is not None and np.isfinite(values).any() else None

    def newest(self, name: str) -> float | None:
        """The newest finite number of a column."""
        values = self.column(name)
        return None if values is None else float(values[np.isfinite(values)][-1])


def read_log(folder: Path) -> LogTable:
    """Reads folder/logs.csv, as read_table does."""
    return read_table(folder / "logs.csv")


def read_table(path: Path) -> LogTable:
    """A row that is damaged is left out, with a warning. OSError where there is no such file."""
    return _table(_rows(path))


def _table(rows: list[dict[str, str]]) -> LogTable:
    names = sorted({name for row in rows for name in row} - {"step", "episode_returns"})
    columns = {name: np.array([_number(row.get(name)) for row in rows], dtype=np.float64) for name in names}
    steps = np.array([_number(row["step"]) for row in rows], dtype=np.float64)
    elapsed_s = columns.get(ELAPSED, np.full(steps.shape, np.nan))
    is_timed = bool(np.isfinite(elapsed_s).all())
    trained_s = _sum_of_lives(elapsed_s) if is_timed else _since_first(columns.get("_time", np.zeros(steps.shape)))
    first = 0.0 if is_timed or not rows else steps[0]
    kept = _not_undone(steps)
    return LogTable(
        steps=steps[kept],
        hours=trained_s[kept] / 3600,
        steps_per_second=float((steps[-1] - first) / trained_s[-1]) if rows and trained_s[-1] > 0 else None,
        columns={name: values[kept] for name, values in columns.items()},
        episode_returns=[_numbers(rows[index].get("episode_returns")) for index in kept],
        has_episodes=all("episode_returns" in row for row in rows),
    )


def _rows(path: Path) -> list[dict[str, str]]:
    """Rows that have a step; a line "# name,name,..." names the columns from there on."""
    rows: list[dict[str, str]] = []
    names: list[str] = []
    num_damaged = 0
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        whole = (line.replace("\0", "") for line in file if line.endswith("\n"))  # the newest may be half written
        for fields in csv.reader(whole):
            if fields and fields[0].startswith("# "):
                names = [fields[0].removeprefix("# "), *fields[1:]]
                continue
            row = dict(zip(names, fields, strict=False))
            if len(fields) == len(names) and np.isfinite(_number(row.get("step"))):
                rows.append(row)
            else:
                num_damaged += 1
    if num_damaged:
        logger.warning("%s: %d damaged rows left out", path, num_damaged)
    return rows


def _sum_of_lives(elapsed_s: Values) -> Values:
    """[N], time of training until each row, from the time within its process."""
    gained_s = np.diff(elapsed_s, prepend=0.0)
    total: Values = np.cumsum(np.where(gained_s < 0, elapsed_s, gained_s))
    return total


def _since_first(times_s: Values) -> Values:
    """[N], time of training since the first row, from the time of day: without pauses."""
    intervals = np.diff(times_s)
    sound = np.isfinite(intervals) & (intervals >= 0)  # a clock that is set back tells nothing
    usual = float(np.median(intervals[sound])) if sound.any() else 0.0
    is_pause = ~sound | (intervals > max(PAUSE_S, PAUSE_INTERVALS * usual))
    return np.concatenate([np.zeros(min(1, times_s.size)), np.cumsum(np.where(is_pause, usual, intervals))])


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


NO_LOG = _table([])
"""Of a run that left none."""
