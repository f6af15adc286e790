"""A Prometheus run by scripts/monitor, and its HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from harness.ports import free_port
from harness.processes.env_server import ROOT

REQUEST_S = 10.0
START_S = 300.0
POLL_S = 0.25

T = TypeVar("T")


class Sample(NamedTuple):
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """Reads the learner on `learner` and the env-servers in the file `targets`. A context manager."""

    def __init__(self, folder: Path, *, learner: str, targets: Path | None = None) -> None:
        """folder: for the time series and the output."""
        self._url = f"127.0.0.1:{free_port()}"
        self._log_path = folder / "monitor.log"
        self._command = [
            str(ROOT / "scripts" / "monitor"),
            *("--learner", learner, "--listen", self._url, "--data", str(folder / "monitor")),
            *(("--targets", str(targets)) if targets else ()),
        ]

    def __enter__(self) -> Self:
        """Blocks until it answers."""
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ})
        try:
            self.eventually(START_S, lambda: self._answers() or None, "Prometheus answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(START_S)
        finally:
            self._process.kill()

    def query(self, expr: str) -> list[Sample]:
        """Returns the present instant vector of `expr`; raises AssertionError if Prometheus rejects the expression."""
        result = self._get("query", query=expr)["result"]
        return [Sample(element["metric"], float(element["value"][1])) for element in result]

    def metric_names(self) -> set[str]:
        """Returns the names of all metrics that it has read."""
        return set(self._get("label/__name__/values"))

    def rules(self) -> list[dict[str, Any]]:
        """Returns the rules of all groups."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def firing(self) -> list[dict[str, str]]:
        """Returns the labels of every alert that fires, with its name as alertname."""
        return [alert["labels"] for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"]

    def eventually(self, limit_s: float, look: Callable[[], T | None], what: object) -> T:
        """Returns the first result of `look` that is not None; raises AssertionError with the then value of `what`
        after limit_s.
        """
        deadline = time.monotonic() + limit_s
        while (found := look()) is None:
            assert self._process.poll() is None, f"Prometheus ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}\n{self.log()}"
            time.sleep(POLL_S)
        return found

    def log(self) -> str:
        """Returns the end of its output."""
        return self._log_path.read_text()[-2000:]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._url}/-/ready", timeout=REQUEST_S):
                return True
        except OSError:
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"http://{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=REQUEST_S) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
