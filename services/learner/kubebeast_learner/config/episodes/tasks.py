"""Tasks that share a learner, and their shares of the training batches."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kubebeast_common.ids.env_id import is_same_env
from kubebeast_learner.config.checks import require


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksConfig:
    """Tasks of a training; a task is an environment, by its id."""

    task_shares: str = ""
    """Environments that share the learner, with the weights of their shares in the training batches: ENV=WEIGHT,
    separated by commas, e.g. "Pong-v5=2,Breakout-v5=1". Their observations and actions must be alike. Empty: one task,
    the environment of the env-servers."""

    def __post_init__(self) -> None:
        _ = self.weights

    @property
    def weights(self) -> Mapping[str, float]:
        """Task to weight, in the order that numbers the tasks from 0; empty if there is one task."""
        return parse_task_shares(self.task_shares)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in order; empty if there is one task."""
        return tuple(self.weights)

    @property
    def num_tasks(self) -> int:
        """Number of tasks, at least 1."""
        return max(1, len(self.weights))

    def require_task(self, env: str) -> None:
        """Raises ConfigError if there are several tasks and `env` is none of them; "" is always valid."""
        is_task = env == "" or any(is_same_env(env, task) for task in self.tasks)
        listed = ", ".join(self.tasks)
        require(not self.tasks or is_task, "env", env, f"is none of the tasks in task_shares: {listed}")


def parse_task_shares(text: str) -> dict[str, float]:
    """Parses the setting task_shares. Raises ConfigError unless it is valid.

    A valid text is empty, or has at least two tasks, each once, with positive weights.
    """
    weights: dict[str, float] = {}
    for entry in text.split(",") if text else []:
        task, _, weight = (part.strip() for part in entry.rpartition("="))
        well_formed = task != "" and re.fullmatch(r"\d+(\.\d+)?", weight) is not None
        require(well_formed, "task_shares", text, f"{entry.strip()!r} must be ENV=WEIGHT, e.g. Pong-v5=2")
        require(task not in weights, "task_shares", text, f"{task} is there twice")
        require(float(weight) > 0.0, "task_shares", text, f"the weight of {task} must be positive")
        weights[task] = float(weight)
    require(len(weights) != 1, "task_shares", text, "must name two tasks at least")
    return weights
