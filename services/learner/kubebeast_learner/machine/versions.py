"""Hardware and versions of a run, which are recorded beside its settings to interpret its speed."""

import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kubebeast_learner import __version__
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.machine.memory import memory_bytes

CPU_INFO = Path("/proc/cpuinfo")


def describe_hardware() -> dict[str, Any]:
    """Returns plain values: cpu, cores and memory_bytes that this process may use, gpus; None for unknown values."""
    return {
        "cpu": _cpu(),
        "cores": num_cores(),
        "memory_bytes": memory_bytes(),
        "gpus": [_gpu(index) for index in range(torch.cuda.device_count())],
    }


def describe_versions() -> dict[str, str]:
    """Returns the versions of KubeBeast and of the software that it computes with."""
    return {
        "kubebeast": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "cuda": torch.version.cuda or "none",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _cpu() -> str | None:
    """Returns the vendor's name of the processor, else its architecture."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or None


def _gpu(index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {"name": properties.name, "memory_bytes": properties.total_memory}
