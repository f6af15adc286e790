"""Use of the GPU during a measurement, as its driver reports it."""

import dataclasses
import statistics
import subprocess
import threading
from typing import Self

INTERVAL_S = 0.5
QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "--id=0")


@dataclasses.dataclass(frozen=True, slots=True)
class GpuUse:
    """Use of the first GPU."""

    busy_percent: float
    """Mean share of the time in which a kernel ran."""
    memory_mib: float
    """Maximum use of memory, by all processes."""


def read_gpu() -> GpuUse | None:
    """Returns the current use; None if there is no GPU, or no driver that reports it."""
    try:
        output = subprocess.run(QUERY, capture_output=True, text=True, check=True, timeout=30).stdout
        busy, memory = output.splitlines()[0].split(",")
        return GpuUse(float(busy), float(memory))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None


class GpuWatch:
    """A context manager that samples the use of the GPU from entering to leaving."""

    def __init__(self) -> None:
        self._samples: list[GpuUse] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def use(self) -> GpuUse | None:
        """Mean use and maximum memory, after leaving the context; None without a GPU."""
        if not self._samples:
            return None
        busy = statistics.mean(sample.busy_percent for sample in self._samples)
        return GpuUse(busy, max(sample.memory_mib for sample in self._samples))

    def _run(self) -> None:
        while (sample := read_gpu()) is not None:
            self._samples.append(sample)
            if self._stopping.wait(INTERVAL_S):
                return
