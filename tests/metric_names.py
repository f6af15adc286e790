"""The names under which learner, evaluation and env-server are scraped."""

from kubebeast_common.metrics import sample_names
from kubebeast_envserver.metrics import ENVSERVER
from kubebeast_learner.observe.metrics import ROWS
from kubebeast_learner.play.follow.metrics import EVALUATION

PROCESS = frozenset(
    f"process_{name}"
    for name in (
        *("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes"),
        *("start_time_seconds", "open_fds", "max_fds"),
    )
)
"""The Python client's own."""


def exported_metrics() -> set[str]:
    """Of everything that the tables name and of the process; a histogram has three names."""
    return {name for row in (*ROWS, *EVALUATION, *ENVSERVER) for name in sample_names(row)} | PROCESS
