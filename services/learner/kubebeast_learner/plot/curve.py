"""The learning curve of one run, read from its logs.csv in the layout of TorchBeast's FileWriter.

The file may be one that a run still writes, that a killed run left, or that grew new columns on the way.
"""

import csv
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubebeast_learner.config import ConfigError

logger = logging.getLogger(__name__)

Values = NDArray[np.float64]

PAUSE_S = 60.0
PAUSE_INTERVALS = 10
"""A gap between two rows that is longer than PAUSE_S and than so many usual intervals is a pause, not training."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curve:
    """One run. The three series hold the N rows that have a return."""

    name: str
    settings: Mapping[str, Any] | None
    """What the run was started with; None where it left no meta.json."""
    steps: Values
    """[N], env-steps, increasing."""
    hours: Values
    """[N], since the first row; a pause between a stop and a resume counts as one usual interval."""
    returns: Values
    """[N], unclipped: mean_episode_return as logged, over the newest episodes, or the mean of a bin's episodes."""
    num_steps: int
    """Env-steps of the newest row, with or without a return."""
    num_hours: float
    """From the first row to the newest."""
    steps_per_second: float | None
    """Mean between the first row and the newest; None for a single row."""

    def until(self, num_steps: float) -> "Curve":
        """The series up to num_steps."""
        kept = self.steps <= num_steps
        return replace(self, steps=self.steps[kept], hours=self.hours[kept], returns=self.returns[kept])

    def steps_to(self, threshold: float) -> int | None:
        """Env-steps of the first row that reaches the return `threshold`; None where none does."""
        reached = np.flatnonzero(self.returns >= threshold)
        return int(self.steps[reached[0]]) if reached.size else None


def read_curve(folder: Path, bin_steps: int | None = None) -> Curve:
    """Reads folder/logs.csv and folder/meta.json. ConfigError without a log or without a whole row in it.

    bin_steps: a point for every so many env-steps, the mean return of the episodes that ended in them, instead of the
    logged means, which lag by half their episodes. ConfigError where the log has no column episode_returns.
    """
    path = folder / "logs.csv"
    try:
        rows = list(_rows(path))
    except OSError as error:
        raise ConfigError(f"runs = {str(folder)!r}: {path}: {error.strerror}") from error
    if not rows:
        raise ConfigError(f"runs = {str(folder)!r}: {path} has no rows")
    hours = _hours(np.array([row.time_s for row in rows]))
    kept = _not_undone(rows)
    steps, returns = (np.array([getattr(rows[index], name) for index in kept]) for name in ("step", "mean_return"))
    hours = hours[kept]
    num_steps, num_hours = int(steps[-1]), float(hours[-1])
    if bin_steps is not None:
        episodes = [rows[index].episode_returns for index in kept]
        if None in episodes:
            raise ConfigError(f"bin_steps = {bin_steps}: {path} has no column episode_returns")
        steps, hours, returns = _binned(steps, hours, [episode or () for episode in episodes], bin_steps)
    finished = np.isfinite(returns)
    trained_s = 3600 * num_hours
    return Curve(
        name=folder.resolve().name,
        settings=_settings(folder / "meta.json"),
        steps=steps[finished],
        hours=hours[finished],
        returns=returns[finished],
        num_steps=num_steps,
        num_hours=num_hours,
        steps_per_second=float((num_steps - rows[0].step) / trained_s) if trained_s > 0 else None,
    )


class _Row(NamedTuple):
    time_s: float
    step: float
    mean_return: float
    """NaN before the first finished episode."""
    episode_returns: tuple[float, ...] | None
    """Of the episodes since the row before; None where the log has no such column."""


def _rows(path: Path) -> Iterator[_Row]:
    """The rows in the file's order; a line "# name,name,..." names the columns from there on."""
    names: list[str] = []
    num_damaged = 0
    with open(path, newline="", encoding="utf-8") as file:
        whole = (line for line in file if line.endswith("\n"))  # the newest line may be half written
        for fields in csv.reader(whole):
            if fields and fields[0].startswith("# "):
                names = [fields[0].removeprefix("# "), *fields[1:]]
                continue
            try:
                row = dict(zip(names, fields, strict=True))
                mean_return = float(row.get("mean_episode_return") or "nan")
                yield _Row(float(row["_time"]), float(row["step"]), mean_return, _numbers(row.get("episode_returns")))
            except (KeyError, ValueError):
                num_damaged += 1
    if num_damaged:
        logger.warning("%s: %d damaged rows left out", path, num_damaged)


def _numbers(text: str | None) -> tuple[float, ...] | None:
    """The numbers of a tuple's text, e.g. "(1.0, 21.0)"; ValueError where it is none."""
    if text is None:
        return None
    return tuple(float(number) for number in text.strip("()").split(",") if number.strip())


def _binned(
    steps: Values, hours: Values, episodes: list[tuple[float, ...]], bin_steps: int
) -> tuple[Values, Values, Values]:
    """End, time of the last row, and mean return of every bin in which an episode ended.

    The newest bin is left out until it is complete, unless it is the only one.
    """
    ends = np.ceil(steps / bin_steps) * bin_steps
    complete = np.unique(ends[ends <= steps[-1]])
    bins = [(end, np.flatnonzero(ends == end)) for end in (complete if complete.size else ends[:1])]
    returns = [np.array([value for row in rows for value in episodes[row]]) for _, rows in bins]
    kept = [index for index, values in enumerate(returns) if values.size]
    return (
        np.array([bins[index][0] for index in kept]),
        np.array([hours[bins[index][1][-1]] for index in kept]),
        np.array([returns[index].mean() for index in kept]),
    )


def _hours(times_s: Values) -> Values:
    intervals = np.diff(times_s)
    usual = float(np.median(intervals)) if intervals.size else 0.0
    is_pause = intervals > max(PAUSE_S, PAUSE_INTERVALS * usual)
    elapsed: Values = np.concatenate([[0.0], np.cumsum(np.where(is_pause, usual, intervals))]) / 3600
    return elapsed


def _not_undone(rows: list[_Row]) -> list[int]:
    """Rows that no resume went back behind: a killed run repeats its steps since the last checkpoint."""
    kept: list[int] = []
    for index, row in enumerate(rows):
        while kept and rows[kept[-1]].step >= row.step:
            kept.pop()
        kept.append(index)
    return kept


def _settings(path: Path) -> dict[str, Any] | None:
    try:
        args = json.loads(path.read_text(encoding="utf-8")).get("args")
    except (OSError, ValueError, AttributeError):
        return None
    return args if isinstance(args, dict) else None
