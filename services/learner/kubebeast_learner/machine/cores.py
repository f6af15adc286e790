"""How much this machine, or the part of it we may use, computes at a time."""

import os


def num_cores() -> int:
    """Cores that this process may run on, where the system tells; else those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
