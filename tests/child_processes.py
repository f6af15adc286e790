"""The processes that a process has started, by what they run."""

import contextlib

import psutil

ENV_SERVER = "kubebeast_envserver"
SPAWNED = "spawn_main"
"""By multiprocessing: a stream of an env-server, an actor of mono."""


def children(pid: int, runs: str) -> list[psutil.Process]:
    """Those of the process `pid` whose command line holds `runs`, without others that libraries start, as
    multiprocessing's resource tracker and the compiler's workers, and without those that have ended.
    """
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if runs in " ".join(child.cmdline()):
                found.append(child)
    return found
