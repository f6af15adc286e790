"""Child processes of a process, selected by command line."""

import contextlib

import psutil

ENV_SERVER = "kubebeast_envserver"
SPAWNED = "spawn_main"
"""Mark of processes that multiprocessing starts: streams of an env-server, actors of mono."""


def children(pid: int, runs: str) -> list[psutil.Process]:
    """Returns the running children of process `pid` with `runs` in their command line. That excludes the processes of
    libraries, such as multiprocessing's resource tracker and the compiler's workers.
    """
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if runs in " ".join(child.cmdline()):
                found.append(child)
    return found
