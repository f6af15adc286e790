"""Measurement of a system that trains in separate processes, from outside."""

import contextlib
import dataclasses
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.end_to_end import busy_s

FRAMES_PER_STEP = 4
_ROOT = Path(__file__).parents[2]
_LAST_LINES = 12
_END_SECONDS = 20.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """Totals of all processes of a system, between two lines of progress."""

    seconds: float
    steps: int
    """Env-steps trained."""
    cpu_s: float
    machine_cpu_s: float
    """CPU seconds of all processes of the machine, including these."""
    memory_mib: float
    """Largest sum of their proportional set sizes (proc(5))."""

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.seconds

    @property
    def frames_per_core_s(self) -> float:
        """Frames of the game for each second of CPU time."""
        return self.steps * FRAMES_PER_STEP / self.cpu_s

    @property
    def cores_used_by_others(self) -> float:
        """Cores used by other processes; if it is far from 0, the results are unreliable."""
        return (self.machine_cpu_s - self.cpu_s) / self.seconds


@dataclasses.dataclass(frozen=True, slots=True)
class _Moment:
    time: float
    step: int
    cpu_s: float
    machine_cpu_s: float
    memory_mib: float


class FailedError(RuntimeError):
    """Raised if a system did not train, with the last line of its output."""


def measure(
    command: Sequence[str], folder: Path | None, step: str, *, start_s: float, warmup_s: float, window_s: float
) -> Measurement:
    """Runs `command` until it has trained for warmup_s and then window_s.

    Args:
        folder: Working directory and PYTHONPATH; None for the root of the repository.
        step: Regular expression with a group that matches the env-steps so far in a line of output.

    Raises:
        FailedError: If it ends early, or makes no progress for start_s.
    """
    pattern, words = re.compile(step), deque[str](maxlen=_LAST_LINES)
    with _running(command, folder) as (process, lines):
        first = _next_moment(process, lines, pattern, words, start_s)
        moments = [first]
        while moments[-1].time < first.time + warmup_s:
            moments = [_next_moment(process, lines, pattern, words, start_s)]
        while moments[-1].time < moments[0].time + window_s:
            moments.append(_next_moment(process, lines, pattern, words, start_s))
    before, after = moments[0], moments[-1]
    return Measurement(
        seconds=after.time - before.time,
        steps=after.step - before.step,
        cpu_s=after.cpu_s - before.cpu_s,
        machine_cpu_s=after.machine_cpu_s - before.machine_cpu_s,
        memory_mib=max(moment.memory_mib for moment in moments),
    )


@contextlib.contextmanager
def _running(command: Sequence[str], folder: Path | None) -> Iterator[tuple[psutil.Process, "queue.Queue[str | None]"]]:
    """Yields the process and a queue of its lines of output, with None at the end; then ends it and its descendants."""
    environment = os.environ | {"PYTHONPATH": str(folder or _ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder or _ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=_read, args=(process.stdout, lines))
    reader.start()
    root = psutil.Process(process.pid)
    try:
        yield root, lines
    finally:
        _end(root)
        process.wait()
        reader.join()
        process.stdout.close()


def _read(output: Iterator[str], lines: "queue.Queue[str | None]") -> None:
    for line in output:
        lines.put(line)
    lines.put(None)


def _end(root: psutil.Process) -> None:
    """Sends SIGINT, which ends most systems, then kills the process if it is still running, and its descendants."""
    family = _family(root)
    with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        root.send_signal(signal.SIGINT)
        root.wait(_END_SECONDS)
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _next_moment(
    process: psutil.Process,
    lines: "queue.Queue[str | None]",
    pattern: re.Pattern[str],
    words: deque[str],
    timeout_s: float,
) -> _Moment:
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            break
        if line is None:
            raise FailedError(_why("ended", words))
        if (match := pattern.search(line)) and int(match[1]):
            return _moment(process, int(match[1]))
        if line.strip():
            words.append(line.strip())
    raise FailedError(_why(f"no progress in {timeout_s:g} s", words))


def _why(what: str, words: deque[str]) -> str:
    """Returns `what` with the last line of output, which names the exception in a traceback; prints the last lines."""
    print(*words, sep="\n", file=sys.stderr)
    return f"{what}: {words[-1]}" if words else what


def _moment(process: psutil.Process, step: int) -> _Moment:
    now, cpu_s, memory = time.monotonic(), 0.0, 0
    for each in _family(process):
        with contextlib.suppress(psutil.Error):
            cpu_s += busy_s(each.cpu_times())
            memory += each.memory_full_info().pss
    return _Moment(now, step, cpu_s, busy_s(psutil.cpu_times()), memory / (1 << 20))


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
