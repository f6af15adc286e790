"""A real `kubebeast broker` that can be killed and restarted on the same address."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from harness.ports import free_address
from harness.processes.env_server import ROOT

WAIT_S = 300.0
POLL_S = 0.1

Fleet = dict[str, Any]
"""The JSON object of /fleet."""


class BrokerProcess:
    """The broker of a test, over several lives. A context manager: entering starts it, leaving kills it."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """Prepares the command; `start` runs it. `folder` is that of its log."""
        self.address = free_address()
        self.log_path = folder / "broker.log"
        self._http_address = free_address()
        self._process: subprocess.Popen[bytes] | None = None
        addresses = [f"--address={self.address}", f"--http-address={self._http_address}"]
        self._command = [sys.executable, "-m", "kubebeast_learner", "broker", *addresses, *flags]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Starts a process, and blocks until it answers."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, stderr=log, env=dict(os.environ))
        self.wait_until(lambda fleet: True)

    def kill(self) -> None:
        """Sends SIGKILL and waits for the end. Idempotent."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT_S)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def terminate(self) -> int:
        """Sends SIGTERM, blocks until the process has ended and returns its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(WAIT_S)

    def fleet(self) -> Fleet:
        """Returns the present runs and streams."""
        content: Fleet = json.loads(self._get("/fleet"))
        return content

    def metrics(self) -> str:
        """Returns the present metrics in Prometheus' text format."""
        return self._get("/metrics")

    def wait_until(self, condition: Callable[[Fleet], bool], timeout_s: float = WAIT_S) -> Fleet:
        """Returns the first state that meets the condition; raises AssertionError with the newest one if none does."""
        assert self._process is not None
        deadline, fleet = time.monotonic() + timeout_s, Fleet()
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                fleet = self.fleet()
                if condition(fleet):
                    return fleet
            except urllib.error.URLError:
                pass
            time.sleep(POLL_S)
        raise AssertionError(f"not so far: {fleet!s:.2000}\n{self.log_path.read_text()[-2000:]}")

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._http_address}{path}", timeout=WAIT_S) as response:
            text: str = response.read().decode()
            return text


def playing(fleet: Fleet) -> dict[str, int]:
    """Returns the number of streams that play for each run."""
    return {run["run_id"]: run["playing"] for run in fleet["runs"]}
