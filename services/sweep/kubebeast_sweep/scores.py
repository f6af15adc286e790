"""Scores of a run from its log: at the end, and at points on the way by which runs are compared."""

import difflib
import math
import time
from array import array
from pathlib import Path

from kubebeast_runs.log_table import NO_LOG, LogTable, read_log
from kubebeast_sweep.plan import Plan

NO_VALUES = array("d")
NUM_POINTS = 20
"""Points of a run at which it is compared with others, at equal distances; the last one is its end."""


MIN_EPISODES = 3
"""Episodes of each environment that an interval of a population should have room for."""
_READING_SHARE = 0.02
"""Share of the time that may go into reading the log of a run again, which takes the longer, the longer the run."""


class Curve:
    """The log of a run that may still be written. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_at = -math.inf
        self._cost_s = 0.0
        self._log = NO_LOG

    def recent(self) -> LogTable:
        """Returns the log as of a moment ago; without rows if there is none yet."""
        if time.monotonic() >= self._read_at + self._cost_s / _READING_SHARE:
            self.newest()
        return self._log

    def newest(self) -> LogTable:
        """Reads the log and returns it."""
        began = time.monotonic()
        try:
            self._log = read_log(self._folder)
        except OSError:
            self._log = NO_LOG
        self._read_at = time.monotonic()
        self._cost_s = self._read_at - began
        return self._log


def num_steps(log: LogTable) -> int:
    return int(log.steps[-1]) if len(log.steps) else 0


def point_of(log: LogTable, plan: Plan) -> int:
    """Returns the number of points that a run has reached."""
    return min(NUM_POINTS, num_steps(log) * NUM_POINTS // plan.total_steps)


def score_at(log: LogTable, plan: Plan, point: int) -> float:
    """Returns the score at a point: the mean over the window of steps before it.

    If the window has no number, as episodes may be longer, it is that of the newest row before; NaN without one.
    """
    return _score_until(log, plan, plan.total_steps * point / NUM_POINTS)


def last_score(log: LogTable, plan: Plan) -> float:
    """Returns the score at the last row of a log, which may be before the last point: a run may end early."""
    return _score_until(log, plan, num_steps(log))


def cut_episodes(log: LogTable, interval: int) -> str:
    """Returns a warning if an interval of so many env-steps has few episodes of each environment, or "".

    Those that it cuts off do not count: the better a run plays, the fewer episodes end, if they are long.
    """
    envs, length = log.newest("envs"), log.newest("mean_episode_step")
    if envs is None or length is None or envs * length * MIN_EPISODES <= interval:
        return ""
    steps = interval / envs
    return (
        f"population.interval = {interval}: each of {envs:.0f} environments makes {steps:.0f} steps, and an episode "
        f"has {length:.0f} in the mean; those that the interval cuts off do not count, so it should be longer"
    )


def missing_column(log: LogTable, plan: Plan) -> str:
    """Returns a warning if a log has rows and no column of the score, or ""."""
    if plan.score == "return" or plan.score in log.columns or not len(log.steps):
        return ""
    near = difflib.get_close_matches(plan.score, ["return", *log.columns], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"score = {plan.score!r}: after {num_steps(log)} steps, logs.csv has no such column{hint}"


def _score_until(log: LogTable, plan: Plan, end: float) -> float:
    if plan.score == "return":
        counts, values = log.new_episodes.counts, log.new_episodes.means
    else:
        values = log.columns.get(plan.score, NO_VALUES)
        counts = array("d", map(math.isfinite, values))
    rows = [row for row, count in enumerate(counts) if count > 0 and log.steps[row] <= end]
    first = end - plan.window_steps
    within = [row for row in rows if log.steps[row] > first] or rows[-1:]
    total = math.fsum(counts[row] for row in within)
    return math.fsum(counts[row] * values[row] for row in within) / total if total else math.nan
