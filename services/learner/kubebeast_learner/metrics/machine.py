"""Metrics of the machine, its GPUs and the build."""

import platform
import time
from collections.abc import Callable

import torch

from kubebeast_common.metrics import COUNTER, GAUGE, Labelled, Row, Value, Values
from kubebeast_common.process.cpu_time import read_cpu_time
from kubebeast_learner import __version__

CPU = (
    Row(
        COUNTER,
        "kubebeast_machine_cpu_seconds",
        "CPU time of all processes in the learner's container, or on its machine if there is no container.",
        "cpu_used_s",
    ),
    Row(GAUGE, "kubebeast_machine_cpus", "CPU limit of that container, or CPUs of that machine.", "cpus"),
)

GPUS = (
    Row(
        GAUGE, "kubebeast_gpu_memory_used_bytes", "Memory of the GPU in use by all processes.", "gpu_used", ("device",)
    ),
    Row(GAUGE, "kubebeast_gpu_memory_total_bytes", "Memory of the GPU.", "gpu_total", ("device",)),
    Row(
        GAUGE,
        "kubebeast_gpu_busy_ratio",
        "Share of the last moments in which the GPU ran a kernel. This metric needs the package nvidia-ml-py.",
        "gpu_busy",
        ("device",),
    ),
)

INFO = (
    Row(
        GAUGE,
        "kubebeast_build_info",
        "Always 1; the labels hold the versions and the device.",
        "build",
        ("version", "python", "torch", "device"),
    ),
    Row(
        GAUGE,
        "kubebeast_learner_start_time_seconds",
        "Time at which the learner's process started to serve metrics, in seconds since 1970.",
        "start_time_s",
    ),
    Row(GAUGE, "kubebeast_run_info", "Always 1; the label holds the name of the run.", "run", ("run_id",)),
)

MACHINE = (*CPU, *GPUS, *INFO)


def machine_reader(run_id: str) -> Callable[[], Values]:
    """Returns a reader of the values of MACHINE; values that the machine lacks or does not report are left out."""
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
        label = (str(index),)
        if (memory := _memory(index)) is not None:
            used[label], total[label] = memory
        try:
            busy[label] = torch.cuda.utilization(index) / 100
        except Exception:  # no nvidia-ml-py, or a driver without utilization, e.g. of a MIG slice: NVML's errors have
            continue  # no other common base
    return {"gpu_used": used, "gpu_total": total, "gpu_busy": busy}


def _memory(index: int) -> tuple[float, float] | None:
    """Returns the used and all memory of a GPU in bytes; None if only a context on it, hundreds of MB, could find out.

    A process that computes on one GPU of several has a context there alone.
    """
    total_bytes = float(torch.cuda.get_device_properties(index).total_memory)
    try:
        return float(torch.cuda.device_memory_used(index)), total_bytes
    except Exception:  # as of utilization
        if torch.cuda.memory_reserved(index) == 0:
            return None
        return total_bytes - torch.cuda.mem_get_info(index)[0], total_bytes
