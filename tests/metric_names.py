"""Names of all metrics that learner, evaluation, env-server and broker export."""

from kubebeast_broker.metrics import BROKER
from kubebeast_common.metrics import sample_names
from kubebeast_envserver.metrics import ENVSERVER
from kubebeast_learner.metrics import ROWS
from kubebeast_learner.play.follow.metrics import EVALUATION

PROCESS = frozenset(
    f"process_{name}"
    for name in (
        *("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes"),
        *("start_time_seconds", "open_fds", "max_fds"),
    )
)
"""Metrics of the Python client itself."""


def exported_metrics() -> set[str]:
    """Returns the names of all metrics in the tables and of the process; a histogram has three names."""
    return {name for row in (*ROWS, *EVALUATION, *ENVSERVER, *BROKER) for name in sample_names(row)} | PROCESS
