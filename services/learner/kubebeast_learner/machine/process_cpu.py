"""CPU time of other processes of this machine, from /proc (Linux)."""

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
"""https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html"""
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Columns after the name of the command, which may contain spaces and brackets."""


def cpu_seconds_of_tree(pid: int, proc: Path = PROC) -> float:
    """Returns user and system time, in seconds, of process `pid` and its live descendants; 0 if it has ended.

    Raises OSError if the system has no /proc.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for each, columns in _stats(proc):
        parents[each], ticks[each] = int(columns[_PARENT]), int(columns[_USER]) + int(columns[_SYSTEM])
    return sum(ticks[each] for each in parents if _is_below(each, pid, parents)) / os.sysconf("SC_CLK_TCK")


def _stats(proc: Path) -> Iterator[tuple[int, list[str]]]:
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # the process has ended
                continue
            yield int(folder.name), text.rpartition(")")[2].split()


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    """Returns True if `pid` is `ancestor` or descends from it."""
    while pid != ancestor and pid in parents:
        pid = parents[pid]
    return pid == ancestor
