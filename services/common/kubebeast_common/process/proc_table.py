"""The kernel's table of processes, /proc (proc(5)). Systems without it, such as macOS, have an empty table."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_PARENT, _FLAGS, _STARTED = 1, 6, 19
"""Indices of fields of /proc/PID/stat after the name of the program."""
_EXITING = 0x4
"""The kernel's flag PF_EXITING."""


class ProcessEntry(NamedTuple):
    """State of a process at one moment."""

    pid: int
    state: str
    """One letter; Z is a zombie: the process has ended and its parent has not waited for it."""
    parent: int
    started: int
    """Start in clock ticks since boot. Pid and start identify a process uniquely, as pids are reused."""

    flags: int
    """The kernel's PF_* flags."""

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX" and not self.flags & _EXITING

    @property
    def is_ending(self) -> bool:
        """True shortly before the process becomes a zombie. Its memory, including its marks, is gone."""
        return self.state not in "ZX" and not self.is_alive


def processes() -> Iterator[ProcessEntry | None]:
    """Yields all processes that existed at the call, the newest first, in their current state; None for ended ones."""
    newest = newest_pid()
    pids: list[int] = []
    with contextlib.suppress(OSError):
        pids = [int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal()]
    # Pids start again from the smallest after pid_max, so those above the newest are older than the others.
    yield from map(read_entry, sorted(pids, key=lambda pid: (newest > 0 and pid > newest, -pid)))


def processes_since(pid: int) -> Iterator[ProcessEntry | None]:
    """Yields all processes that started after `newest_pid` returned `pid`, in their current state; None for ended ones
    and ended threads. Also yields older ones if pids have started again from the smallest, or `pid` is 0.
    """
    newest = newest_pid()
    if not 0 < pid <= newest:
        yield from processes()
        return
    for new in range(newest, pid, -1):
        entry = read_entry(new)
        if entry is None or not _is_thread(new):
            yield entry


def _is_thread(pid: int) -> bool:
    """Returns True for a thread other than the first of its process; they share the ids of processes."""
    with contextlib.suppress(OSError):
        return f"\nTgid:\t{pid}\n".encode() not in (_PROC / str(pid) / "status").read_bytes()
    return False


def newest_pid() -> int:
    """Returns the pid of the most recent process or thread (the last field of /proc/loadavg); 0 if it is unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((_PROC / "loadavg").read_text().split()[4])
    return 0


def read_entry(pid: int) -> ProcessEntry | None:
    """Reads the entry of one process; None if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = (_PROC / str(pid) / "stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()  # the name may contain any character
        return ProcessEntry(pid, fields[0].decode(), int(fields[_PARENT]), int(fields[_STARTED]), int(fields[_FLAGS]))
    return None


def children(pid: int) -> list[int]:
    """Returns the children of all threads of a process. Reads few files, while `processes` reads one per process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):  # the thread is gone
                found += map(int, (thread / "children").read_text().split())
    return found


def started_with(pid: int, variable: str) -> str:
    """Returns the value of a variable at the start of a process's program; "" if it is unset or not readable."""
    prefix = f"{variable}=".encode()
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(prefix):
                return entry.removeprefix(prefix).decode(errors="replace")
    return ""


def command_line(pid: int) -> bytes:
    """Returns the arguments of a process, each followed by a zero byte; empty if the process is gone."""
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes()
    return b""
