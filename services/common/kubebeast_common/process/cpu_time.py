"""CPU time of the machine, or of the container of this process, as an indicator of CPU shortage."""

import os
from pathlib import Path
from typing import NamedTuple

CGROUP = Path("/sys/fs/cgroup")
"""Control group of the process: in a container its own, otherwise that of the whole machine."""
PROC_STAT = Path("/proc/stat")
IDLE_COLUMNS = (3, 4)
"""Columns idle and iowait, https://man7.org/linux/man-pages/man5/proc_stat.5.html; others include guest time."""
NUM_COLUMNS = 8


class CpuTime(NamedTuple):
    used_s: float
    """CPU time used by all processes of the container or machine; monotonic."""
    num_cpus: float
    """CPUs that can be used at once: the limit of a container, else those of the machine."""


def read_cpu_time(cgroup: Path = CGROUP, proc_stat: Path = PROC_STAT) -> CpuTime | None:
    """Returns the CPU time and the number of CPUs; None on systems without this information, such as macOS."""
    for read, where in ((_cgroup_v2, cgroup), (_cgroup_v1, cgroup), (_machine, proc_stat)):
        try:
            used_s, limit = read(where)
        except (OSError, ValueError, LookupError):
            continue
        num_cpus = float(os.cpu_count() or 1)
        return CpuTime(used_s, num_cpus if limit is None else min(limit, num_cpus))
    return None


def _cgroup_v2(folder: Path) -> tuple[float, float | None]:
    """Reads https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files; the root group has no limit."""
    counts = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    limit = folder / "cpu.max"
    quota, period = limit.read_text().split() if limit.exists() else ("max", "1")
    return int(counts["usage_usec"]) / 1e6, None if quota == "max" else int(quota) / int(period)


def _cgroup_v1(folder: Path) -> tuple[float, float | None]:
    used_s = int((folder / "cpuacct" / "cpuacct.usage").read_text()) / 1e9
    quota, period = (int((folder / "cpu" / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return used_s, quota / period if quota > 0 else None


def _machine(proc_stat: Path) -> tuple[float, None]:
    """Returns the sum over all CPUs in the first line of the file, which is in ticks."""
    name, *columns = proc_stat.read_text().splitlines()[0].split()
    if name != "cpu":
        raise ValueError(f"{proc_stat}: the first line is not about all CPUs")
    ticks = [int(column) for column in columns[:NUM_COLUMNS]]
    return (sum(ticks) - sum(ticks[index] for index in IDLE_COLUMNS)) / os.sysconf("SC_CLK_TCK"), None
