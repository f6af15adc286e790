"""A real `kubebeast learner` that can be killed and started again on the same address, and what it says meanwhile."""

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

WAIT_S = 120.0
"""For what takes a learner seconds: to import torch, to train on."""
XPID = "run"


class Progress(NamedTuple):
    """A JSON progress line."""

    time_s: float
    """When it came, by time.monotonic."""
    values: dict[str, Any]
    """Fields of Snapshot."""


class LearnerProcess:
    """The learner of the run in `folder`, life after life. A context manager: entering starts it, leaving kills it.

    Its waits block until the learner has said so, at most WAIT_S, and raise AssertionError with the end of its log.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        command: str = "learner",
        total_steps: int = 10**9,
        variables: Mapping[str, str] | None = None,
        warm: bool = False,
    ) -> None:
        """command: or train or mono, which host the environments that the flags name. variables: of the process's
        environment, beside those of this one. warm: as warm_start says, where neither its start nor its memory is
        measured.
        """
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.http_address = f"127.0.0.1:{free_port()}"
        self.history: list[Progress] = []
        """Over all lives."""
        self.listening_at: float | None = None
        """When this life said that its port is open, by time.monotonic."""
        self._changed = threading.Condition()
        self._stray_lines: list[str] = []
        self._readers: list[threading.Thread] = []
        listening = [f"--address={self.address}", f"--http-address={self.http_address}"]
        self._command = [
            *(sys.executable, "-m", "kubebeast_learner", command),
            *(listening if command == "learner" else []),
            f"--savedir={folder}",
            f"--xpid={XPID}",
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
        """Returns at once."""
        self.listening_at = None
        self._process = self._launch()
        for target, stream in ((self._read_progress, self._process.stdout), (self._read_log, self._process.stderr)):
            reader = threading.Thread(target=target, args=(stream,))
            reader.start()
            self._readers.append(reader)

    def kill(self) -> None:
        """SIGKILL. Idempotent."""
        self._process.kill()
        self._join()

    def terminate(self) -> int:
        """SIGTERM; blocks until the process has ended and returns its exit status."""
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
        """Values of the newest progress line; empty before the first."""
        return self.history[-1].values if self.history else {}

    def wait_until(self, condition: Callable[[dict[str, Any]], bool]) -> Progress:
        """Returns the first progress line from now on whose values meet the condition."""
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
        """Returns when so many more steps were trained on."""
        target = self.newest.get("step", 0) + num_steps
        self.wait_until(lambda values: values["step"] >= target)

    def wait_listening(self) -> float:
        """Returns when this life's port was opened, by time.monotonic."""
        with self._changed:
            assert self._wait(lambda: self.listening_at is not None), f"it does not listen:\n{self.log()[-2000:]}"
            assert self.listening_at is not None
            return self.listening_at

    def books(self) -> dict[str, int]:
        """Of this life, at this moment."""
        return books.read_metrics(self.scrape())

    def scrape(self) -> str:
        """Its metrics at this moment, as Prometheus reads them."""
        with urllib.request.urlopen(f"http://{self.http_address}/metrics", timeout=WAIT_S) as response:
            text: str = response.read().decode()
            return text

    def log(self) -> str:
        """out.log of the run, all lives."""
        path = self.folder / XPID / "out.log"
        return path.read_text() if path.exists() else ""

    def errors(self) -> list[str]:
        """First lines of what was logged as an error, and what was written to standard error beside the log."""
        return re.findall(r"^\[(?:ERROR|CRITICAL).*", self.log(), re.MULTILINE) + self._stray_lines

    def resumed_steps(self) -> list[int]:
        """Where the lives that found a checkpoint began."""
        return [int(step) for step in re.findall(r"resuming \S+ at step (\d+)", self.log())]

    def _launch(self) -> subprocess.Popen[str] | warm_start.Process:
        if self._warm:
            return warm_start.Process(self._command, cwd=ROOT, env=self._environ)
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=self._environ)

    def _wait(self, condition: Callable[[], bool]) -> bool:
        """Needs the lock; False when the time is up or the learner has ended."""
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
                with contextlib.suppress(json.JSONDecodeError), self._changed:  # a kill may tear the last line
                    if line.startswith("{"):
                        self.history.append(Progress(time.monotonic(), json.loads(line)))
                        self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _read_log(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                if not line.startswith("{"):
                    self._stray_lines.append(line)
                if "listening on " in line:
                    with self._changed:
                        self.listening_at = time.monotonic()
                        self._changed.notify_all()
