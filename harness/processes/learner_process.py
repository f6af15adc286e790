"""A real `kubebeast learner` that can be killed and restarted on the same address, with its output and metrics."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from harness.chaos import books, witness
from harness.ports import free_port
from harness.processes import warm_start
from harness.processes.env_server import ROOT
from harness.processes.small_volume import SmallVolume

WAIT_S = 300.0
"""Timeout of operations that take a learner seconds, such as importing torch."""
XPID = "run"


class Progress(NamedTuple):
    """A JSON progress line."""

    time_s: float
    """Time of arrival, by time.monotonic."""
    values: dict[str, Any]
    """Fields of Snapshot."""


class LearnerProcess:
    """The learner of the run in `folder`, over several lives. A context manager: entering starts it, leaving kills it.

    Its waits block until the learner reports the event, at most WAIT_S, and else raise AssertionError with the end of
    its log.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        command: str = "learner",
        total_steps: int = 10**9,
        variables: Mapping[str, str] | None = None,
        warm: bool = False,
        volume: SmallVolume | None = None,
        xpid: str = XPID,
        module: str = "kubebeast_learner",
    ) -> None:
        """Prepares the command; `start` runs it.

        Args:
            command: "learner", or "train" or "mono", which host the environments that the flags name.
            variables: Environment variables, in addition to those of this process.
            warm: Use `warm_start`, if neither start-up time nor memory is measured.
            volume: File system of the run's folder, already entered.
            xpid: Name of the run.
            module: Module of the program, which takes the same words.
        """
        self.folder = folder
        self.run_folder = folder / xpid if volume is None else volume.inside
        """Folder of the run's files, as other processes see it."""
        self.address = f"127.0.0.1:{free_port()}"
        self.http_address = f"127.0.0.1:{free_port()}"
        self.history: list[Progress] = []
        """Progress lines of all lives."""
        self.listening_at: float | None = None
        """Time at which this life reported that its port is open, by time.monotonic."""
        self._changed = threading.Condition()
        self._printed: list[str] = []
        """Lines of standard error."""
        self._readers: list[threading.Thread] = []
        listening = [f"--address={self.address}", f"--http-address={self.http_address}"]
        self._command = [
            *([] if volume is None else volume.words),
            *(sys.executable, "-m", module, command, "--recipe=torchbeast"),
            *(listening if command == "learner" else []),
            f"--savedir={folder}",
            f"--xpid={xpid}",
            "--progress=json",
            f"--total-steps={total_steps}",
            *flags,
        ]
        own = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", witness.FOLDER: str(folder)}
        self._environ = {**os.environ, **own, **(variables or {})}
        self._warm = warm

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Starts a process, without waiting for it."""
        self.listening_at = None
        self._process = self._launch()
        for target, stream in ((self._read_progress, self._process.stdout), (self._read_log, self._process.stderr)):
            reader = threading.Thread(target=target, args=(stream,))
            reader.start()
            self._readers.append(reader)

    def kill(self) -> None:
        """Sends SIGKILL and waits for the end. Idempotent."""
        self._process.kill()
        self._join()

    def terminate(self) -> int:
        """Sends SIGTERM, blocks until the process has ended and returns its exit status."""
        self._process.terminate()
        return self._join()

    def wait(self) -> int:
        """Blocks until the process ends by itself, without a limit, and returns its exit status."""
        self._process.wait()
        return self._join()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def newest(self) -> dict[str, Any]:
        """Values of the newest progress line; empty before the first one."""
        return self.history[-1].values if self.history else {}

    def wait_until(self, condition: Callable[[dict[str, Any]], bool]) -> Progress:
        """Returns the first progress line from now on with values that meet the condition."""
        looked_at = len(self.history)

        def is_met() -> bool:
            nonlocal looked_at
            while looked_at < len(self.history):
                looked_at += 1
                if condition(self.history[looked_at - 1].values):
                    return True
            return False

        with self._changed:
            assert self._wait(is_met), f"not so far: {self.newest}\n{self.log()[-2000:]}"
            return self.history[looked_at - 1]

    def wait_for_steps(self, num_steps: int) -> None:
        """Blocks until `num_steps` more steps are trained on."""
        target = self.newest.get("step", 0) + num_steps
        self.wait_until(lambda values: values["step"] >= target)

    def wait_listening(self) -> float:
        """Blocks until this life's port is open and returns the time, by time.monotonic."""
        with self._changed:
            assert self._wait(lambda: self.listening_at is not None), f"it does not listen:\n{self.log()[-2000:]}"
            assert self.listening_at is not None
            return self.listening_at

    def books(self) -> dict[str, int]:
        """Returns the current books of this life."""
        return books.read_metrics(self.scrape())

    def scrape(self) -> str:
        """Returns the current metrics in Prometheus' text format."""
        with urllib.request.urlopen(f"http://{self.http_address}/metrics", timeout=WAIT_S) as response:
            text: str = response.read().decode()
            return text

    def log(self) -> str:
        """Returns out.log of the run, over all lives, or standard error if the run never began and left no folder."""
        path = self.run_folder / "out.log"
        return path.read_text() if path.exists() else "".join(self._printed)

    def errors(self) -> list[str]:
        """Returns the first lines of logged errors, and lines on standard error that are not from the log."""
        logged = r'^(?:\[(?:ERROR|CRITICAL)|\{.*"level": "(?:error|critical)").*'
        stray = [line for line in self._printed if not line.startswith("{")]
        return re.findall(logged, self.log(), re.MULTILINE) + stray

    def resumed_steps(self) -> list[int]:
        """Returns the first steps of the lives that resumed from a checkpoint."""
        return [int(step) for step in re.findall(r"resuming \S+ at step (\d+)", self.log())]

    def _launch(self) -> subprocess.Popen[str] | warm_start.Process:
        if self._warm:
            return warm_start.Process(self._command, cwd=ROOT, env=self._environ)
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=self._environ)

    def _wait(self, condition: Callable[[], bool]) -> bool:
        """Waits for the condition, with the lock held; returns False on a timeout or if the learner has ended."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            if self._process.poll() is not None or not self._changed.wait(deadline - time.monotonic()):
                return condition()
        return True

    def _join(self) -> int:
        status = self._process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        self._readers.clear()
        return status

    def _read_progress(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with contextlib.suppress(json.JSONDecodeError), self._changed:  # a kill may cut the last line
                    if line.startswith("{"):
                        self.history.append(Progress(time.monotonic(), json.loads(line)))
                        self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _read_log(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._printed.append(line)
                if "listening on " in line:
                    with self._changed:
                        self.listening_at = time.monotonic()
                        self._changed.notify_all()
