"""Metrics of the machine and of what runs on it."""

import platform
from collections.abc import Callable

import torch

from kubebeast_envserver.metric_table import GAUGE, Labelled, Row, Values
from kubebeast_learner import __version__

GPUS = (
    Row(GAUGE, "kubebeast_gpu_memory_used_bytes", "Memory in use on a GPU, by anybody.", "gpu_used", ("device",)),
    Row(GAUGE, "kubebeast_gpu_memory_total_bytes", "Memory of a GPU.", "gpu_total", ("device",)),
    Row(
        GAUGE,
        "kubebeast_gpu_busy_ratio",
        "Share of the last moments that a GPU ran a kernel; needs the package nvidia-ml-py.",
        "gpu_busy",
        ("device",),
    ),
)

INFO = (
    Row(
        GAUGE,
        "kubebeast_build_info",
        "1, with what runs here as labels.",
        "build",
        ("version", "python", "torch", "device"),
    ),
    Row(GAUGE, "kubebeast_run_info", "1, with the run's name as a label.", "run", ("run_id",)),
)

MACHINE = (*GPUS, *INFO)


def machine_reader(run_id: str) -> Callable[[], Values]:
    """What fills MACHINE; where there is no GPU its metrics have no samples."""
    num_devices = torch.cuda.device_count()
    device = torch.cuda.get_device_name(0) if num_devices else "cpu"
    info: dict[str, Labelled] = {
        "build": {(__version__, platform.python_version(), torch.__version__, device): 1.0},
        "run": {(run_id,): 1.0},
    }
    return lambda: info | (_gpus(num_devices) if num_devices else {})


def _gpus(num_devices: int) -> dict[str, Labelled]:
    used: dict[tuple[str, ...], float] = {}
    total: dict[tuple[str, ...], float] = {}
    busy: dict[tuple[str, ...], float] = {}
    for index in range(num_devices):
        free_bytes, total_bytes = torch.cuda.mem_get_info(index)
        label = (str(index),)
        used[label], total[label] = float(total_bytes - free_bytes), float(total_bytes)
        try:
            busy[label] = torch.cuda.utilization(index) / 100
        except (ModuleNotFoundError, RuntimeError):  # no nvidia-ml-py, or a driver that does not tell
            continue
    return {"gpu_used": used, "gpu_total": total, "gpu_busy": busy}
