"""Tasks of a learner that trains several: speed, share of the steps, and mean return."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from kubebeast_observe.numbers import number_text
from kubebeast_observe.scrape import Scrape, growth, rate
from kubebeast_observe.table import draw_table

STEPS, RETURN = "kubebeast_task_steps_total", "kubebeast_task_episode_return_mean"
MAX_ROWS = 8
"""Maximum number of tasks that are drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRow:
    """One task; unknown values are None. Rates are over the window between two looks."""

    env_id: str
    steps_per_second: float | None
    """Env-steps trained on."""
    step_share: float | None
    """Share of all env-steps that were trained on in the window."""
    episode_return_mean: float | None


def task_rows(before: Scrape | None, now: Scrape) -> list[TaskRow]:
    """Returns a row for each task in task_shares; empty for a single task."""
    returns = now.metrics.by_label(RETURN, "env_id")
    tasks = list(now.metrics.by_label(STEPS, "env_id"))
    gained = {task: growth(before, now, STEPS, env_id=task) for task in tasks}
    total = sum(steps or 0.0 for steps in gained.values())
    return [
        TaskRow(
            env_id=task,
            steps_per_second=rate(before, now, STEPS, env_id=task),
            step_share=None if steps is None or not total else steps / total,
            episode_return_mean=returns.get(task),
        )
        for task, steps in gained.items()
    ]


def draw_tasks(rows: Sequence[TaskRow], width: int) -> Table:
    """Draws the first MAX_ROWS tasks."""
    lines = [
        {
            "environment": Text(row.env_id),
            "trained steps/s": Text(number_text(row.steps_per_second)),
            "share": Text(number_text(row.step_share, ".1%")),
            "return": Text(number_text(row.episode_return_mean, ",.2f")),
        }
        for row in rows[:MAX_ROWS]
    ]
    return draw_table(list(lines[0]), (), lines, width, fold=False)
