"""What a run computes on and with: recorded beside its settings, since speed means little without it."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kubebeast_learner import __version__
from kubebeast_learner.machine.cores import num_cores

CPU_INFO = Path("/proc/cpuinfo")
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""https://docs.kernel.org/admin-guide/cgroup-v2.html, "max" where there is none."""


def describe_hardware() -> dict[str, Any]:
    """Plain values: cpu, cores that this process may use, memory_bytes it may use, gpus; None where it is not told."""
    return {
        "cpu": _cpu(),
        "cores": num_cores(),
        "memory_bytes": _memory_bytes(),
        "gpus": [_gpu(index) for index in range(torch.cuda.device_count())],
    }


def describe_versions() -> dict[str, str]:
    """Of KubeBeast and of what computes."""
    return {
        "kubebeast": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "cuda": torch.version.cuda or "none",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _cpu() -> str | None:
    """The processor's name as its maker gives it, else its architecture."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or None


def _memory_bytes() -> int | None:
    """The machine's, or the smaller limit of the container."""
    known: list[int] = []
    try:
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        known.append(int(MEMORY_LIMIT.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        pass  # the system has neither, or the limit is "max"
    return min(known, default=None)


def _gpu(index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {"name": properties.name, "memory_bytes": properties.total_memory}
