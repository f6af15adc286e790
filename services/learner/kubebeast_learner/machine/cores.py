"""CPU cores that this process may use."""

import os

from kubebeast_learner.machine.cpu_time import read_cpu_time


def num_cores() -> int:
    """Returns the cores that our processes can use: those of the affinity mask, within the container's CPU limit."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cpu_time = read_cpu_time()
    return allowed if cpu_time is None else max(1, min(allowed, int(cpu_time.num_cpus)))
