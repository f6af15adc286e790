"""Starts `python -m PACKAGE` without importing torch anew in every test, which takes seconds of CPU time.

One process of each pytest worker imports the libraries, none of KubeBeast's modules, and is forked for every started
command: a new process with its own arguments, variables, folder, output and signals.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import IO, Self

LIBRARIES = ["torch", "torch._dynamo", "torch.utils.tensorboard", "gymnasium", "grpc", "prometheus_client", "tyro"]
"""Libraries to import in advance. torch._dynamo: every optimizer imports it."""

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(LIBRARIES)


class Process:
    """The part of subprocess.Popen that tests of commands use; standard output and error are pipes of text."""

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> None:
        """Starts the command `python -m PACKAGE ARGUMENTS`; env and cwd are those of subprocess.Popen."""
        python, dash_m, package, *arguments = words
        assert (python, dash_m) == (sys.executable, "-m")
        self.stdout, output = _pipe()
        self.stderr, errors = _pipe()
        with output, errors:
            self._process = _forkserver.Process(
                name="MainProcess",
                target=_become,
                args=(package, arguments, dict(env), str(cwd or Path.cwd()), output, errors),
            )
            self._process.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        """Waits until the process has ended; kills it first after an error in the block."""
        if kind is not None:
            self.kill()
        self._process.join()
        self.stdout.close()
        self.stderr.close()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the exit status, negative if a signal ended the process; raises TimeoutExpired after `timeout`."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for the end, returns the remaining output and errors; on a timeout, kills and raises TimeoutExpired."""
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(self.stderr.read()))
        limit = threading.Timer(timeout, self.kill) if timeout else None
        reader.start()
        if limit:
            limit.start()
        output = self.stdout.read()
        reader.join()
        self.wait()
        if limit and limit.finished.is_set():
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0, output, errors[0])
        if limit:
            limit.cancel()
        return output, errors[0]


def run(
    words: Sequence[str], *, env: Mapping[str, str], timeout: float, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command like subprocess.run with text=True and capture_output=True."""
    with Process(words, env=env, cwd=cwd) as process:
        output, errors = process.communicate(timeout)
    assert process.returncode is not None
    return subprocess.CompletedProcess(list(words), process.returncode, output, errors)


def _pipe() -> tuple[IO[str], Connection]:
    reading, writing = os.pipe()
    return os.fdopen(reading, encoding="utf-8"), Connection(writing, readable=False)


def _become(
    package: str, arguments: list[str], variables: dict[str, str], folder: str, output: Connection, errors: Connection
) -> None:
    """Becomes the command, in the forked process."""
    for number, pipe in enumerate((output, errors), start=1):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    tempfile.tempdir = None  # computed anew from the variables
    sys.argv = [package, *arguments]
    sys.path[:0] = [folder, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))]
    runpy.run_module(package, run_name="__main__", alter_sys=True)
