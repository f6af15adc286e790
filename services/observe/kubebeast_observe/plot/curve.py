"""Learning curve of one run from its logs.csv, or its evaluation curve from the scores of an evaluator."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kubebeast_common.settings import ConfigError
from kubebeast_observe.arrays import Values, as_array, column
from kubebeast_runs.folder import read_meta
from kubebeast_runs.log_table import LogTable, NewEpisodes, read_log
from kubebeast_runs.parts import evaluation
from kubebeast_runs.scores import ScoreError, choose_evaluator, evaluators_in, read_scores
from kubebeast_runs.storage.local import LocalStorage


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curve:
    """One run. The three series hold the N rows that have a return."""

    name: str
    settings: Mapping[str, Any] | None
    """Settings of the run; None if it has no meta.json."""
    steps: Values
    """[N], env-steps, increasing."""
    hours: Values
    """[N], hours of training, as in LogTable."""
    returns: Values
    """[N], unclipped: mean_episode_return as logged, over the newest episodes; the mean of a bin's episodes; or the
    mean of the episodes that a checkpoint was played for.
    """
    num_steps: int
    """Env-steps of the newest row, with or without a return."""
    num_hours: float
    """Hours of training until the newest row."""
    steps_per_second: float | None
    """Mean over the training; None if it is not in the log."""

    def until(self, num_steps: float) -> "Curve":
        """Returns the curve up to num_steps."""
        kept = self.steps <= num_steps
        return replace(self, steps=self.steps[kept], hours=self.hours[kept], returns=self.returns[kept])

    def steps_to(self, threshold: float) -> int | None:
        """Returns the env-steps of the first row that reaches the return `threshold`; None if none does."""
        reached = np.flatnonzero(self.returns >= threshold)
        return int(self.steps[reached[0]]) if reached.size else None


def read_curve(
    folder: Path,
    bin_steps: int | None = None,
    source: Literal["training", "eval"] = "training",
    evaluator: str = "",
) -> Curve:
    """Reads folder/logs.csv and folder/meta.json.

    Args:
        bin_steps: Env-steps per point. A point is the mean return of the episodes that ended in its bin, instead of the
            logged mean, which lags by half of its episodes.
        source: "eval" for the scores of an evaluator.
        evaluator: Name of the evaluator; "" is the one without a name, or the only one.

    Raises:
        ConfigError: logs.csv is missing or has no whole row, bin_steps is set and it has no column episode_returns, or
            source is "eval" and there are no scores, or those of several evaluators.
    """
    path = folder / "logs.csv"
    try:
        log = read_log(folder)
    except OSError as error:
        raise ConfigError(f"runs = {str(folder)!r}: {path}: {error.strerror}") from error
    if not log.steps:
        raise ConfigError(f"runs = {str(folder)!r}: {path} has no rows")
    steps, hours = as_array(log.steps), as_array(log.hours)
    logged = log.columns.get("mean_episode_return")
    returns = np.full(steps.shape, np.nan) if logged is None else as_array(logged)
    if bin_steps is not None:
        if not log.has_episodes:
            raise ConfigError(f"bin_steps = {bin_steps}: {path} has no column episode_returns")
        steps, hours, returns = _binned(steps, hours, log.new_episodes, bin_steps)
    if source == "eval":
        steps, hours, returns = _played(folder, log, evaluator)
    finished = np.isfinite(returns)
    args = read_meta(folder).get("args")
    return Curve(
        name=folder.resolve().name,
        settings=args if isinstance(args, dict) else None,
        steps=steps[finished],
        hours=hours[finished],
        returns=returns[finished],
        num_steps=int(log.steps[-1]),
        num_hours=float(log.hours[-1]),
        steps_per_second=log.steps_per_second,
    )


def _played(folder: Path, log: LogTable, evaluator: str) -> tuple[Values, Values, Values]:
    """Returns the steps of the played checkpoints, the hours of training until then, and the mean returns."""
    files = LocalStorage(folder)
    try:
        names = evaluators_in(files)
        name = choose_evaluator(evaluator, names) if names or evaluator else ""
        scores = read_scores(files, name)
    except ScoreError as error:
        raise ConfigError(f"evaluator = {evaluator!r}: {folder}: {error}") from error
    except OSError as error:
        raise ConfigError(f"returns = 'eval': the scores in {folder} cannot be read: {error}") from error
    returns = column(scores, "mean_return")
    if returns is None:
        path = folder / evaluation(name).first_file
        raise ConfigError(f"returns = 'eval': {path} has no score; kubebeast eval --follow plays a run's checkpoints")
    hours: Values = np.interp(scores.steps, [0.0, *log.steps], [0.0, *log.hours])
    return as_array(scores.steps), hours, returns


def _binned(steps: Values, hours: Values, episodes: NewEpisodes, bin_steps: int) -> tuple[Values, Values, Values]:
    """Returns the end, the time of the last row, and the mean return of every bin in which an episode ended.

    The newest bin is left out until it is complete, unless it is the only one.
    """
    ends = np.ceil(steps / bin_steps) * bin_steps
    counts, means = as_array(episodes.counts), as_array(episodes.means)
    shown = np.flatnonzero((ends <= max(steps[-1], ends[0])) & (counts > 0))
    points = []
    for end, rows in itertools.groupby(shown, key=ends.__getitem__):
        members = list(rows)
        mean = np.average(means[members], weights=counts[members])
        last = np.flatnonzero(ends == end)[-1]
        points.append((end, hours[last], mean))
    binned: Values = np.array(points, dtype=np.float64).reshape(-1, 3)
    return binned[:, 0], binned[:, 1], binned[:, 2]
