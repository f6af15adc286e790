"""Metrics of what a training learns from: the native pool's, and those of its tasks.

Values are RemoteActors.stats, the native pool's histograms, and what tasks return.
"""

from kubebeast_common.metrics import COUNTER, GAUGE, Row
from kubebeast_common.pool.metrics import INFERENCE, STEPS, STREAMS

TASKS = (
    Row(COUNTER, "kubebeast_task_episodes", "Finished episodes of a task.", "task_episodes", ("env_id",)),
    Row(
        GAUGE,
        "kubebeast_task_episode_return_mean",
        "Mean unclipped return of the newest episodes of a task.",
        "task_returns",
        ("env_id",),
    ),
)

ACTORS = (*STEPS, *STREAMS, *INFERENCE, *TASKS)
