"""Metrics of the actors: those of the native pool, and those of the tasks.

Values are RemoteActors.stats, the native pool's histograms, and the returns of the tasks.
"""

from kubebeast_common.metrics import COUNTER, GAUGE, Row
from kubebeast_common.pool.metrics import INFERENCE, STEPS, STREAMS

TASKS = (
    Row(COUNTER, "kubebeast_task_episodes", "Finished episodes of the task.", "task_episodes", ("env_id",)),
    Row(
        GAUGE,
        "kubebeast_task_episode_return_mean",
        "Mean unclipped return of the newest episodes of the task.",
        "task_returns",
        ("env_id",),
    ),
)

ACTORS = (*STEPS, *STREAMS, *INFERENCE, *TASKS)
