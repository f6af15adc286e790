"""Reader of the tables in a run's folder, such as logs.csv, in the layout of TorchBeast's FileWriter.

The file may still be written by a run, end in the middle of a row, gain columns on the way or be damaged.
"""

import contextlib
import csv
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Values = NDArray[np.float64]
_Summary = tuple[float, ...]
"""Count, mean, minimum and maximum return of a row's new episodes."""

ELAPSED = "elapsed_s"
"""Column with the training time of a process, which restarts with every process."""
SUMMARY = ("new_episodes", "new_mean_return", "new_min_return", "new_max_return")
"""Columns of the episodes since the previous row; older logs only have episode_returns."""
NO_EPISODES = (0.0, np.nan, np.nan, np.nan)
PAUSE_S = 60.0
PAUSE_INTERVALS = 10
"""Without ELAPSED, a gap longer than PAUSE_S and than PAUSE_INTERVALS median intervals is a pause, not training."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LogTable:
    """N rows of a log, without those that were undone: a killed run repeats its steps since the last checkpoint."""

    steps: Values
    """[N], env-steps, increasing."""
    hours: Values
    """[N], training time until the row, including repeated steps but not the pauses between processes. In a log without
    ELAPSED, such as TorchBeast's, it counts from the first row."""
    steps_per_second: float | None
    """Mean over that time; None if it is 0."""
    columns: dict[str, Values]
    """[N] each, NaN if a row has no number."""
    new_episodes: "NewEpisodes"
    """Episodes since the previous row."""
    has_episodes: bool
    """True if the log has the returns of single episodes."""

    def column(self, name: str) -> Values | None:
        """Returns the column, or None if it has no finite number."""
        values = self.columns.get(name)
        return values if values is not None and np.isfinite(values).any() else None

    def newest(self, name: str) -> float | None:
        """Returns the newest finite number of a column, or None if there is none."""
        values = self.column(name)
        return None if values is None else float(values[np.isfinite(values)][-1])


@dataclass(frozen=True, slots=True, eq=False)
class NewEpisodes:
    """Episodes since the previous row, for each of N rows: from its summary or, if it has none, its list of returns."""

    counts: Values
    """[N]"""
    means: Values
    """[N], of unclipped returns, like the two below; NaN if no episode ended."""
    lows: Values
    highs: Values


def read_log(folder: Path) -> LogTable:
    """Reads folder/logs.csv, as read_table does."""
    return read_table(folder / "logs.csv")


def read_table(path: Path) -> LogTable:
    """Reads a table; damaged rows are left out, with a warning. Raises OSError if there is no such file."""
    return _table(*_rows(path))


def _table(rows: list[dict[str, str]], summaries: list[_Summary]) -> LogTable:
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
        new_episodes=NewEpisodes(*np.array(summaries, dtype=np.float64).reshape(-1, 4)[kept].T),
        has_episodes=all("episode_returns" in row for row in rows),
    )


def _rows(path: Path) -> tuple[list[dict[str, str]], list[_Summary]]:
    """Returns the rows that have a step, and summaries of their new episodes instead of lists of any size.

    A line "# name,name,..." names the columns from there on.
    """
    rows: list[dict[str, str]] = []
    summaries: list[_Summary] = []
    names: list[str] = []
    num_damaged = 0
    with open(path, newline="", encoding="utf-8", errors="replace") as file, _fields_of_any_size():
        for line in file:
            if not line.endswith("\n"):  # the last line may be incomplete
                continue
            fields = _fields(line)
            if fields and fields[0].startswith("# "):
                names = [fields[0].removeprefix("# "), *fields[1:]]
                continue
            row = dict(zip(names, fields, strict=False))
            if len(fields) == len(names) and np.isfinite(_number(row.get("step"))):
                summaries.append(_summary(row))
                rows.append({name: "" if name == "episode_returns" else text for name, text in row.items()})
            else:
                num_damaged += 1
    if num_damaged:
        logger.warning("%s: %d damaged rows left out", path, num_damaged)
    return rows, summaries


def _fields(line: str) -> list[str]:
    """Parses a single line: an open quote in a torn row must not swallow the rows after it."""
    try:
        return next(csv.reader([line.replace("\0", "")]), [])
    except csv.Error:
        return []


@contextlib.contextmanager
def _fields_of_any_size() -> Iterator[None]:
    """Lifts csv's limit of 128 KiB per field: rows of older logs list the return of every episode."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _summary(row: dict[str, str]) -> _Summary:
    """Returns count, mean, minimum and maximum return of a row's new episodes."""
    if row.get("new_episodes"):
        summary = tuple(_number(row.get(name)) for name in SUMMARY)
        return summary if np.isfinite(summary).all() else NO_EPISODES
    returns = _numbers(row.get("episode_returns"))
    if not returns:
        return NO_EPISODES
    return float(len(returns)), float(np.mean(returns)), min(returns), max(returns)


def _sum_of_lives(elapsed_s: Values) -> Values:
    """Returns the training time until each row, [N], from the time within its process."""
    gained_s = np.diff(elapsed_s, prepend=0.0)
    total: Values = np.cumsum(np.where(gained_s < 0, elapsed_s, gained_s))
    return total


def _since_first(times_s: Values) -> Values:
    """Returns the training time since the first row without pauses, [N], from the time of day."""
    intervals = np.diff(times_s)
    sound = np.isfinite(intervals) & (intervals >= 0)  # a clock that was set back gives no interval
    usual = float(np.median(intervals[sound])) if sound.any() else 0.0
    is_pause = ~sound | (intervals > max(PAUSE_S, PAUSE_INTERVALS * usual))
    return np.concatenate([np.zeros(min(1, times_s.size)), np.cumsum(np.where(is_pause, usual, intervals))])


def _not_undone(steps: Values) -> list[int]:
    """Returns the indices of the rows that have fewer steps than every later row."""
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
    """Returns the finite numbers in the text of a tuple, e.g. "(1.0, 21.0)"."""
    numbers = (_number(part.strip()) for part in (text or "").strip("()").split(","))
    return tuple(number for number in numbers if np.isfinite(number))


NO_LOG = _table([], [])
"""The table of a run without a log."""
