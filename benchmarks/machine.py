"""Description of the machine of a result."""

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

import psutil

_DISTRIBUTIONS = ("torch", "grpcio", "protobuf", "numpy", "gymnasium", "ale-py", "lz4")


def describe() -> dict[str, object]:
    """Returns CPU, cores usable by this process, memory, software versions and date, but not the machine's name."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": _gpu_model(),
        "python": platform.python_version(),
        "packages": {name: version for name in _DISTRIBUTIONS if (version := _version(name))},
        "commit": _commit(),
    }


def cpu_model() -> str:
    """Returns the processor's name, e.g. "AMD EPYC"; its architecture if the system does not report a name."""
    cpuinfo = Path("/proc/cpuinfo")
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return match.group(1).strip() if match else platform.machine()


def slug() -> str:
    """Returns the hardware as part of a file name, e.g. "amd-epyc-2-cores"."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{cpu_model()} {_gpu_model() or ''}".lower()).strip("-")
    return f"{name}-{len(os.sched_getaffinity(0))}-cores"


def _gpu_model() -> str | None:
    try:
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Returns the measured commit, with "-dirty" if tracked files differ from it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
