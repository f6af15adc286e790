"""The tasks of a learner that trains several: how fast each is, its share, what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from kubebeast_learner.observe.numbers import number_text
from kubebeast_learner.observe.scrape import Scrape, growth, rate
from kubebeast_learner.observe.table import draw_table

STEPS, RETURN = "kubebeast_task_steps_total", "kubebeast_task_episode_return_mean"
MAX_ROWS = 8
"""Of tasks that are drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRow:
    """One task; None where a value is not known. Rates are over the window of two looks."""

    env_id: str
    steps_per_second: float | None
    """Env-steps trained on."""
    step_share: float | None
    """Of all env-steps that were trained on."""
    episode_return_mean: float | None


def task_rows(before: Scrape | None, now: Scrape) -> list[TaskRow]:
    """A row for each task in task_shares; none where there is one task."""
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
    """The first MAX_ROWS."""
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
