"""Runs a command and measures the time of the command and all of its descendants."""

import collections
import ctypes
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphans of all generations become children of this process."""


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """Costs of a command."""

    status: int
    """Exit status; negative if a signal ended the command."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """User and system time, including descendants that outlived their parents."""
    cache_hits: int
    """Compilations that ccache served."""
    cache_misses: int


def run(words: Sequence[str], *, env: Mapping[str, str], cwd: Path, output: IO[bytes] | None = None) -> Measured:
    """Runs a command and blocks until it has ended, then kills the processes that it has left behind.

    Args:
        output: File for standard output and error; None for those of this process.
    """
    with tempfile.TemporaryDirectory() as folder:
        compiled, used = Path(folder, "ccache"), Path(folder, "cpu")
        began = time.monotonic()
        supervisor = [sys.executable, "-I", __file__, str(used), *words]
        variables = {**env, "CCACHE_STATSLOG": str(compiled)}
        status = subprocess.run(
            supervisor, env=variables, cwd=cwd, stdout=output, stderr=output, check=False
        ).returncode
        seconds = time.monotonic() - began
        hits, misses = count_compilations(compiled.read_text() if compiled.exists() else "")
        return Measured(status, seconds, float(used.read_text()) if used.exists() else 0.0, hits, misses)


def path_with_tools(root: Path) -> str:
    """Returns PATH with .venv/tools: helm, kubectl, promtool and prometheus, if they were installed there."""
    return f"{os.environ['PATH']}{os.pathsep}{root / '.venv' / 'tools'}"


def count_compilations(stats_log: str) -> tuple[int, int]:
    """Returns the hits and misses in ccache's log of results (its manual, `stats_log`)."""
    counts = collections.Counter(line for line in stats_log.splitlines() if not line.startswith("#"))
    return counts["direct_cache_hit"] + counts["preprocessed_cache_hit"], counts["cache_miss"]


def _supervise(used: Path, words: Sequence[str]) -> int:
    """Runs in a separate process, so that all its children are descendants of the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pid = os.posix_spawnp(words[0], list(words), os.environ)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    ended, status = os.wait()
    # Orphans are reaped as soon as they end: the command must not find them as zombies.
    while ended != pid:
        ended, status = os.wait()
    _end_orphans()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    used.write_text(str(usage.ru_utime + usage.ru_stime))
    return os.waitstatus_to_exitcode(status)


def _end_orphans() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.exists() and (left := children.read_text().split()):
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        for pid in left:
            os.waitpid(int(pid), 0)


if __name__ == "__main__":
    code = _supervise(Path(sys.argv[1]), sys.argv[2:])
    sys.exit(128 - code if code < 0 else code)
