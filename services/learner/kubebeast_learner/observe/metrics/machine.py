"""Metrics of the machine and of what runs on it."""

import platform
import time
from collections.abc import Callable

import torch

from kubebeast_common.metrics import COUNTER, GAUGE, Labelled, Row, Value, Values
from kubebeast_learner import __version__
from kubebeast_learner.machine.cpu_time import read_cpu_time

CPU = (
    Row(
        COUNTER,
        "kubebeast_machine_cpu_seconds",
        "CPU time that anybody used on the learner's machine, or in its container where it is in one.",
        "cpu_used_s",
    ),
    Row(GAUGE, "kubebeast_machine_cpus", "CPUs that may be used there at once: of the container its limit.", "cpus"),
)

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
    Row(
        GAUGE,
        "kubebeast_learner_start_time_seconds",
        "When the learner's process started to serve its metrics, in seconds since 1970.",
        "start_time_s",
    ),
    Row(GAUGE, "kubebeast_run_info", "1, with the run's name as a label.", "run", ("run_id",)),
)

MACHINE = (*CPU, *GPUS, *INFO)


def machine_reader(run_id: str) -> Callable[[], Values]:
    """What fills MACHINE; what the machine does not have or does not tell has no samples."""
    num_devices = torch.cuda.device_count()
    device = torch.cuda.get_device_name(0) if num_devices else "cpu"
    info: dict[str, Labelled] = {
        "build": {(__version__, platform.python_version(), torch.__version__, device): 1.0},
        "run": {(run_id,): 1.0},
    }
    start_time_s = time.time()
    return lambda: {**info, "start_time_s": start_time_s, **_cpu(), **(_gpus(num_devices) if num_devices else {})}


def _cpu() -> dict[str, Value]:
    cpu = read_cpu_time()
    return {} if cpu is None else {"cpu_used_s": cpu.used_s, "cpus": cpu.num_cpus}


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
        except Exception:  # no nvidia-ml-py, or a driver that does not tell, as of a part of a GPU: NVML's errors have
            continue  # no base but this
    return {"gpu_used": used, "gpu_total": total, "gpu_busy": busy}
