"""Groups of the columns of logs.csv in TensorBoard and services: the part of a tag before the slash names its group."""

import math
from collections.abc import Mapping

from kubebeast_runs.files.table_file import Value

GROUPS: Mapping[str, tuple[str, ...]] = {
    "charts": ("mean_episode_return", "mean_episode_step", "episodes", "sps", "learning_rate"),
    "losses": ("total_loss", "pg_loss", "baseline_loss", "entropy_loss", "grad_norm"),
    "policy": ("entropy", "entropy_cost", "policy_lag", "mean_rho", "clipped_rho"),
    "episodes": ("new_episodes", "new_mean_return", "new_min_return", "new_max_return"),
    "updates": ("num_updates", "num_skipped_updates"),
    "actors": ("streams", "envs", "actor_restarts", "env_failures", "rows_per_inference", "inference_busy_ratio"),
    "rollouts": (
        *("learner_queue_size", "starved_ratio"),
        *("steps_in_flight", "steps_dropped_partial", "steps_dropped_stale"),
    ),
    "checkpoints": ("checkpoint_age_s", "checkpoint_failures", "node_notices"),
}
OTHERS = "run"
"""Group of the columns that no other group has."""
_GROUP_OF = {column: group for group, columns in GROUPS.items() for column in columns}


def tag_of(column: str) -> str:
    """Returns the tag of a column, e.g. losses/pg_loss.

    Infos, curriculum, league, tasks and ranks have groups of their own.
    """
    name, slash, part = column.partition("/")
    if slash and name in ("info", "curriculum", "league"):
        return column
    if slash and name == "loss":
        return f"losses/{part}"
    if slash:
        group = "ranks" if part.removeprefix("rank").isdigit() else "tasks"
        return f"{group}/{name}/{part}"
    return f"{_GROUP_OF.get(column, OTHERS)}/{column}"


def tagged_numbers(values: Mapping[str, Value]) -> dict[str, float]:
    """Returns the finite numbers of a row by their tags."""
    numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    return {tag_of(name): value for name, value in numbers.items() if math.isfinite(value)}
