"""Reader of the tables in a run's folder, such as logs.csv, in the layout of TorchBeast's FileWriter.

The file may still be written by a run, end in the middle of a row, gain columns on the way or be damaged. Columns are
arrays of float64 from the standard library, which NumPy takes over without a copy (np.asarray).
"""

import contextlib
import csv
import itertools
import logging
import math
import statistics
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

logger = logging.getLogger(__name__)

Values: TypeAlias = "array[float]"
"""An array of type code "d", float64."""
_Summary = tuple[float, ...]
"""Count, mean, minimum and maximum return of a row's new episodes."""

ELAPSED = "elapsed_s"
"""Column with the training time of a process, which restarts with every process."""
SUMMARY = ("new_episodes", "new_mean_return", "new_min_return", "new_max_return")
"""Columns of the episodes since the previous row; older logs only have episode_returns."""
NO_EPISODES = (0.0, math.nan, math.nan, math.nan)
PAUSE_S = 60.0
PAUSE_INTERVALS = 10
"""Without ELAPSED, a gap longer than PAUSE_S and than PAUSE_INTERVALS median intervals is a pause, not training."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LogTable:
    """N rows of a log, without those that were undone: a killed run repeats its steps since the last checkpoint.

    Rows of one process with the same step, as a slow learner writes between two updates, are one row.
    """

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

    def column(self, name: str) -> "Values | None":
        """Returns the column, or None if it has no finite number."""
        values = self.columns.get(name)
        return values if values is not None and any(map(math.isfinite, values)) else None

    def newest(self, name: str) -> float | None:
        """Returns the newest finite number of a column, or None if there is none."""
        return next((value for value in reversed(self.columns.get(name, ())) if math.isfinite(value)), None)

    def best(self, name: str) -> float | None:
        """Returns the largest finite number of a column, or None if there is none."""
        return max(filter(math.isfinite, self.columns.get(name, ())), default=None)


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
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        return parse_table(file, str(path))


def parse_table(lines: Iterable[str], place: str) -> LogTable:
    """Reads a table from its lines, which end as in the file, as read_table does. place: name of the file, for it."""
    return _table(*_rows(lines, place))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a table that have a step, as texts by column, also those that were undone.

    Raises OSError if there is no such file.
    """
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        return _rows(file, str(path))[0]


def _table(rows: list[dict[str, str]], summaries: list[_Summary]) -> LogTable:
    names = sorted({name for row in rows for name in row} - {"step", "episode_returns"})
    columns = {name: array("d", [_number(row.get(name)) for row in rows]) for name in names}
    steps = array("d", [_number(row["step"]) for row in rows])
    elapsed_s = columns.get(ELAPSED, array("d", [math.nan] * len(rows)))
    is_timed = all(map(math.isfinite, elapsed_s))
    times_s = columns.get("_time", array("d", [0.0] * len(rows)))
    trained_s = _sum_of_lives(elapsed_s) if is_timed else _since_first(times_s)
    first = 0.0 if is_timed or not rows else steps[0]
    kept = _not_undone(steps, elapsed_s)
    episodes = [_joined([summaries[index] for index in group]) for group in kept]

    def keep(values: Sequence[float]) -> Values:
        return array("d", [_newest(values[group.start : group.stop]) for group in kept])

    return LogTable(
        steps=keep(steps),
        hours=array("d", [trained_s[group[-1]] / 3600 for group in kept]),
        steps_per_second=(steps[-1] - first) / trained_s[-1] if rows and trained_s[-1] > 0 else None,
        columns={name: keep(values) for name, values in columns.items()},
        new_episodes=NewEpisodes(*(array("d", [each[place] for each in episodes]) for place in range(len(SUMMARY)))),
        has_episodes=all("episode_returns" in row for row in rows),
    )


def _rows(lines: Iterable[str], place: str) -> tuple[list[dict[str, str]], list[_Summary]]:
    """Returns the rows that have a step, and summaries of their new episodes instead of lists of any size.

    A line "# name,name,..." names the columns from there on.
    """
    rows: list[dict[str, str]] = []
    summaries: list[_Summary] = []
    names: list[str] = []
    num_damaged = 0
    with _fields_of_any_size():
        for line in lines:
            if not line.endswith("\n"):  # the last line may be incomplete
                continue
            fields = _fields(line)
            if fields and fields[0].startswith("# "):
                names = [fields[0].removeprefix("# "), *fields[1:]]
                continue
            row = dict(zip(names, fields, strict=False))
            if len(fields) == len(names) and math.isfinite(_number(row.get("step"))):
                summaries.append(_summary(row))
                rows.append({name: "" if name == "episode_returns" else text for name, text in row.items()})
            else:
                num_damaged += 1
    if num_damaged:
        logger.warning("%s: %d damaged rows left out", place, num_damaged)
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
        return summary if all(map(math.isfinite, summary)) else NO_EPISODES
    returns = _numbers(row.get("episode_returns"))
    if not returns:
        return NO_EPISODES
    return float(len(returns)), math.fsum(returns) / len(returns), min(returns), max(returns)


def _sum_of_lives(elapsed_s: Sequence[float]) -> list[float]:
    """Returns the training time until each row, [N], from the time within its process."""
    lives = itertools.pairwise([0.0, *elapsed_s])
    return list(itertools.accumulate(now if now < before else now - before for before, now in lives))


def _since_first(times_s: Sequence[float]) -> list[float]:
    """Returns the training time since the first row without pauses, [N], from the time of day."""
    intervals = [now - before for before, now in itertools.pairwise(times_s)]
    sound = [interval for interval in intervals if interval >= 0]  # no NaN, and no clock that was set back
    usual = statistics.median(sound) if sound else 0.0
    longest = max(PAUSE_S, PAUSE_INTERVALS * usual)
    played = (interval if 0 <= interval <= longest else usual for interval in intervals)
    return list(itertools.accumulate(played, initial=0.0)) if times_s else []


def _not_undone(steps: Sequence[float], elapsed_s: Sequence[float]) -> list[range]:
    """Returns, for each step that was not undone, the indices of its rows: those that have fewer steps than every later
    row, but for the next rows of the same process.
    """
    kept: list[range] = []
    least = math.inf
    for index in range(len(steps) - 1, -1, -1):
        if steps[index] < least:
            kept.append(range(index, index + 1))
            least = steps[index]
        elif steps[index] == least and kept[-1][0] == index + 1 and not elapsed_s[index] > elapsed_s[index + 1]:
            kept[-1] = range(index, kept[-1].stop)
    return kept[::-1]


def _newest(values: Sequence[float]) -> float:
    """Returns the newest finite number, or NaN: a row without an episode has no number of episodes."""
    return next(filter(math.isfinite, reversed(values)), math.nan)


def _joined(summaries: Sequence[_Summary]) -> _Summary:
    """Returns the summary of the episodes of several rows."""
    counted = [summary for summary in summaries if summary[0] > 0]
    if not counted:
        return NO_EPISODES
    counts, means, lows, highs = zip(*counted, strict=True)
    total = math.fsum(counts)
    mean = math.fsum(count * mean for count, mean in zip(counts, means, strict=True)) / total
    return total, mean, min(lows), max(highs)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _numbers(text: str | None) -> tuple[float, ...]:
    """Returns the finite numbers in the text of a tuple, e.g. "(1.0, 21.0)"."""
    numbers = (_number(part.strip()) for part in (text or "").strip("()").split(","))
    return tuple(filter(math.isfinite, numbers))


NO_LOG = _table([], [])
"""The table of a run without a log."""
