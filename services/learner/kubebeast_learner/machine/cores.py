"""CPU cores that this process may use."""

import os

import torch

from kubebeast_common.process.cpu_time import read_cpu_time


def num_cores() -> int:
    """Returns the cores that our processes can use: those of the affinity mask, within the container's CPU limit."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cpu_time = read_cpu_time()
    return allowed if cpu_time is None else max(1, min(allowed, int(cpu_time.num_cpus)))


def num_threads(device: torch.device, cores: int) -> int:
    """Returns the number of threads of one operation on the CPU, for a learner on `device` beside `cores` free cores.

    With a GPU it is 1: the CPU copies a little at a time, and OpenMP's other threads would spin in between, on cores
    that env-servers need.
    """
    return max(1, min(4, cores)) if device.type == "cpu" else 1
