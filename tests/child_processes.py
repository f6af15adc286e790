"""Child processes of a process, selected by command line."""

import contextlib
import time

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
            if runs in " ".join(_command_line(child)):
                found.append(child)
    return found


def _command_line(process: psutil.Process) -> list[str]:
    """Returns the command line; blocks while a program that has just been executed has none.

    exec closes the descriptors, for which subprocess.Popen waits, before it sets the arguments: begin_new_exec in the
    kernel's fs/exec.c.
    """
    while not (words := process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.001)
    return words
