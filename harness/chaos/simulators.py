"""An environment that starts a process, as those with simulators do, in several ways that could escape a cleanup.

Importing this module registers Simulators-v0. For every process, a file with its id as name is created in a folder.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
from numpy.typing import NDArray

ENV_ID = f"{__name__}:Simulators-v0"
Observation = NDArray[np.float32]


def started(folder: Path) -> set[int]:
    """Returns the ids of all processes that were started."""
    return {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}


def alive(folder: Path) -> set[int]:
    """Returns the ids of running processes, including a process that forks repeatedly and has no file yet."""
    forkers = {
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if "-I" in (words := process.info["cmdline"] or []) and str(folder) in words[-1]
    }
    return {pid for pid in started(folder) | forkers if _runs(pid)}


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


SILENT: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
"""Redirections, so that a reader of the parent's output does not wait for these processes."""


def _child(folder: Path, **options: Any) -> None:
    process = subprocess.Popen(["sleep", "600"], **SILENT, **options)
    (folder / str(process.pid)).touch()


def _deaf_child(folder: Path) -> None:
    process = subprocess.Popen(["sh", "-c", "trap '' HUP INT TERM; while :; do sleep 600; done"], **SILENT)
    (folder / str(process.pid)).touch()


def _fork(folder: Path) -> None:
    """Forks a process, which inherits the open files of its parent."""
    if os.fork() == 0:
        _stay(folder)


def _daemon(folder: Path) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    _stay(folder)


def _stay(folder: Path) -> None:
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    (folder / str(os.getpid())).touch()
    while True:
        signal.pause()


def _forker(folder: Path) -> None:
    """Starts a process that forks repeatedly, each time in a new session; the parent exits."""
    code = f"""
import os, pathlib, time
while True:
    pathlib.Path({str(folder)!r}, str(os.getpid())).touch()
    time.sleep(0.01)
    if os.fork():
        os._exit(0)
    os.setsid()
"""
    subprocess.run([sys.executable, "-I", "-c", code], check=True, **SILENT)


def _grandchild(folder: Path) -> None:
    process = subprocess.Popen(["sh", "-c", f"sleep 600 & touch {folder}/$!; wait"], **SILENT)
    (folder / str(process.pid)).touch()


WAYS: dict[str, Callable[[Path], None]] = {
    "child": _child,
    "ignores signals": _deaf_child,
    "session of its own": lambda folder: _child(folder, start_new_session=True),
    "variables of its own": lambda folder: _child(folder, env={"PATH": os.environ["PATH"]}),
    "grandchild": _grandchild,
    "fork": _fork,
    "daemon": _daemon,
    "forks over and over": _forker,
}


class Simulators(gymnasium.Env[Observation, np.int64]):
    """An environment with episodes of 10 steps; closing it does not end the process."""

    def __init__(
        self, folder: str, way: str = "child", exits_at: int = 0, raises_at: int = 0, starts_in_reset: bool = False
    ) -> None:
        """Starts the process.

        Args:
            folder: Folder of the files.
            way: Key of WAYS.
            exits_at: Step, over all episodes, in which it ends its own process; 0 for never.
            raises_at: Step, over all episodes, that raises RuntimeError; 0 for none.
            starts_in_reset: Starts the process in the first reset instead.
        """
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._exits_at, self._raises_at = exits_at, raises_at
        self._steps = 0
        self._start: Callable[[], None] | None = lambda: WAYS[way](Path(folder))
        if not starts_in_reset:
            self._start_once()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._start_once()
        return np.zeros(2, np.float32), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._exits_at:
            os._exit(5)
        if self._steps == self._raises_at:
            raise RuntimeError("the simulator is broken")
        return np.full(2, 0.5, np.float32), 1.0, self._steps % 10 == 0, False, {}

    def _start_once(self) -> None:
        start, self._start = self._start, None
        if start is not None:
            start()


gymnasium.register("Simulators-v0", entry_point=f"{__name__}:{Simulators.__name__}", disable_env_checker=True)
