"""Conditions that end a run before its total_steps."""

from kubebeast_learner.config import RunConfig
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.run.task_returns import RECENT_EPISODES


def end_of(run: RunConfig, stats: RunStats) -> str:
    """Returns the reason why a run has reached its end; "" if it has not."""
    if stats.step >= run.total_steps:
        return f"it has made {stats.step} steps and total_steps is {run.total_steps}"
    lowest = stats.lowest_mean_return()
    if run.stop_at_return is not None and lowest is not None and lowest >= run.stop_at_return:
        mean = f"the mean return of the newest {RECENT_EPISODES} episodes is {lowest:.4g}"
        return f"{mean} and stop_at_return is {run.stop_at_return:g}"
    hours = stats.trained_s / 3600
    if run.max_hours is not None and hours >= run.max_hours:
        return f"it has trained for {hours:.4g} hours and max_hours is {run.max_hours:g}"
    return ""
