"""Termination of a process that runs environments together with all its descendants, including daemons.

A daemon leaves its parent, its process group and its session, and may ignore every signal but SIGKILL. Three traces
remain: a mark in the environment variables of its program, which forks keep and programs inherit; its parent, as long
as the parent lives; and for an orphan, the nearest ancestor that adopts orphans (prctl(2), PR_SET_CHILD_SUBREAPER). On
systems other than Linux nothing is found and nothing is killed.
"""

import contextlib
import ctypes
import logging
import multiprocessing.resource_tracker
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Literal

from kubebeast_common.process.proc_table import (
    ProcessEntry,
    children,
    command_line,
    newest_pid,
    processes_since,
    read_entry,
    started_with,
)
from kubebeast_common.process.waiting import wait_for_end

VARIABLE = "_KUBEBEAST_FAMILY"
"""Variable that holds the marks of all families of a process, the innermost last."""
SAFE_PATH, OURS = "PYTHONSAFEPATH", "kubebeast"
"""Variable, and the value that is set for the start of a Python process, so that it does not import modules from the
working directory (https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSAFEPATH)."""

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 2.0
"""Time limit for killed processes to disappear, and for killing a process that keeps forking."""
_CLEAN_SEARCHES = 2
"""Consecutive searches without a new process, and without one that ended meanwhile, that prove that none is left."""
_LOOK_EVERY_S = 2.0
_NEW_FOR_S = 1.0
_TRACKER = b"multiprocessing.resource_tracker"
"""Command line of a process that is not killed: it ends after its last user, and then removes leaked semaphores and
shared memory."""

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Context with further environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Family:
    """A process, its successors in the same role, and their descendants. Not thread-safe."""

    def __init__(self) -> None:
        self._mark = f"{os.environ.get(VARIABLE, '')}/{uuid.uuid4().hex}"
        self._known: set[tuple[int, int]] = set()
        """Pid and start time of descendants seen so far, as a program may be started without the mark."""
        self._look_at = 0.0

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for the start of the process."""
        return {VARIABLE: self._mark}

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Context for the start of the process by multiprocessing's spawn; the process then calls `has_started`.

        The process starts with the mark, without the working directory on its module path, and with SIGINT blocked
        until it can handle it, because a terminal sends SIGINT to all its processes at once.
        """
        safe = {} if os.environ.get(SAFE_PATH) else {SAFE_PATH: OURS}
        with _environment(safe):
            multiprocessing.resource_tracker.ensure_running()  # else it would start below and inherit the mark
        with _environment(safe | self.variables):
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @contextlib.contextmanager
    def adding(self) -> Iterator[None]:
        """Context for code in this process: the processes that it starts, and their descendants, are of the family.

        A daemon that was forked, without a program of its own, is missed.
        """
        before = _known(_below(os.getpid()))
        with _environment(self.variables):
            try:
                yield
            finally:
                self._known |= _known(_below(os.getpid())) - before

    def look(self, pid: int) -> None:
        """Records the descendants of the process, at most once in _LOOK_EVERY_S seconds. Call it often."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        living = {(entry.pid, entry.started) for entry in map(read_entry, [pid for pid, _ in self._known]) if entry}
        known = self._known & living  # including daemons, which are no longer below the process
        roots = [pid, *(pid for pid, _ in known)]
        self._known = known.union(*(_known(_below(root)) for root in roots))

    def kill(self, orphans: Iterable[int] = ()) -> None:
        """Kills the process, if it is alive, and all its descendants. orphans are its known orphans, if any.

        Blocks until all are gone, for at most two seconds, and logs a warning with the number of survivors.
        """
        known, self._known = self._known, set()
        known |= _known(map(read_entry, orphans))
        _kill(_Marked(self._mark, known))


def has_started() -> None:
    """Restores signals and variables for programs that environments start. To be called in a process started within
    `Family.starting`, once it handles SIGINT.
    """
    if os.environ.get(SAFE_PATH) == OURS:
        del os.environ[SAFE_PATH]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def adopt_orphans() -> None:
    """Makes this process, instead of process 1, the new parent of its orphaned descendants. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_ended(own: Container[int] = ()) -> None:
    """Reaps the children that have ended, adopted ones among them. Does not block.

    Without it, each would keep its process id to the end of this process. Children that other code waits for must be in
    `own`, because their exit statuses are lost.
    """
    for pid in children(os.getpid()):
        entry = None if pid in own else read_entry(pid)
        if entry is not None and not entry.is_alive:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


class Adopted:
    """Adopted children of this process. All its other children must be passed as `own`."""

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._older: set[int] = set()
        """Children at an earlier call of `look`."""
        self._age_at = 0.0

    def look(self, own: set[int]) -> None:
        """Records the adopted children and reaps those that have ended, as process 1 would. Does not block."""
        if time.monotonic() >= self._age_at:
            self._age_at = time.monotonic() + _NEW_FOR_S
            self._older, self._pids = self._pids, set(children(os.getpid())) - own
        reap_ended(own)

    def new(self, own: set[int]) -> set[int]:
        """Returns children adopted in the last second or two: orphans of a process that has just ended. Some arrive
        shortly before its end is noticed.
        """
        return set(children(os.getpid())) - own - self._older


def kill_descendants() -> None:
    """Kills all descendants of this process, including adopted ones. Blocks like `Family.kill`."""
    _kill(lambda: _below(os.getpid()))


def kill_own_family() -> None:
    """Kills all descendants of this process, including daemons, if it was started within `Family.starting`. Blocks
    like `Family.kill`.
    """
    kill_descendants()
    if mark := started_with(os.getpid(), VARIABLE):
        _kill(_Marked(mark))


class _Marked:
    """Search for processes with a mark or in `known` (pid, start time)."""

    def __init__(self, mark: str, known: Container[tuple[int, int]] = ()) -> None:
        self._mark = mark
        self._known = known
        self._newest = 0

    def __call__(self) -> Iterator[ProcessEntry | None]:
        """Yields the processes; None for one that ended meanwhile.

        The first call searches all, later calls those that have started since the call before: the successors of
        processes that have ended are among them, and few others, so that a process that keeps forking is soon met
        between two forks.
        """
        since, self._newest = self._newest, newest_pid()
        above = {os.getpid(), os.getppid()}
        for entry in processes_since(since):
            if entry is None or entry.is_ending:
                yield None
            elif entry.is_alive and entry.pid not in above:
                marks = started_with(entry.pid, VARIABLE)
                if (entry.pid, entry.started) in self._known or f"{marks}/".startswith(f"{self._mark}/"):
                    yield entry
                elif marks == "" and not ((now := read_entry(entry.pid)) and now.is_alive):  # too late to see marks
                    yield None


def _known(entries: Iterable[ProcessEntry | None]) -> set[tuple[int, int]]:
    return {(entry.pid, entry.started) for entry in entries if entry}


def _below(pid: int) -> Iterator[ProcessEntry | None]:
    """Yields all descendants of a process, children before parents: the children of an ended process are unknown.

    The newest children come first: a process that keeps forking has ended before thousands of older ones are read.
    """
    for child in reversed(children(pid)):
        entry = read_entry(child)
        if entry is not None:
            yield from _below(child)
        yield entry


def _kill(find: Callable[[], Iterator[ProcessEntry | None]]) -> None:
    """Kills each process as soon as it is found. find yields None for a process that ended before it was read, which
    may have been one that keeps forking.
    """
    deadline = time.monotonic() + _PATIENCE_S
    num_clean = 0
    seen: set[int] = set()
    while num_clean < _CLEAN_SEARCHES:
        ends = [(entry, _end(entry)) for entry in find()]
        killed = [entry.pid for entry, end in ends if entry is not None and end == "killed"]
        found = {entry.pid for entry, _ in ends if entry is not None}
        # A new process that has ended since may have forked, too.
        is_clean = found <= seen and all(end == "left" for _, end in ends)
        num_clean, seen = num_clean + 1 if is_clean else 0, seen | found
        if time.monotonic() >= deadline:
            if killed:
                logger.warning("%d processes that an environment has started cannot be ended", len(killed))
            return
        for pid in killed:
            wait_for_end(pid, max(0.0, deadline - time.monotonic()))


def _end(entry: ProcessEntry | None) -> Literal["killed", "gone", "left"]:
    """Kills a process if it is alive, may be killed and is not multiprocessing's resource tracker."""
    if entry is None or entry.is_ending:
        return "gone"
    if not entry.is_alive or _TRACKER in command_line(entry.pid):
        return "left"
    try:
        os.kill(entry.pid, signal.SIGKILL)
    except ProcessLookupError:
        return "gone"
    except OSError:  # it belongs to another user
        return "left"
    return "killed"
