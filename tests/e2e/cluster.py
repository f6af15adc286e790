"""kubectl, as a user runs it."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

Seen = TypeVar("Seen")

COMMAND_S = 300.0
"""Longest time for one command."""
LOOK_EVERY_S = 0.5


def run(*command: str, stdin: str | None = None) -> str:
    """Returns the standard output of a command that must succeed."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def eventually(look: Callable[[], Seen | None], *, within_s: float, what: str) -> Seen:
    """Returns the first true value of `look`; raises AssertionError with `what`, which did not happen, and the last
    result.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            seen = look()
        except (AssertionError, KeyError, ValueError) as error:  # a pod that does not exist yet has no such fields
            seen, problem = None, f"{type(error).__name__}: {error}"
        else:
            problem = f"last seen: {seen!r}"
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}; {problem}"
        time.sleep(LOOK_EVERY_S)


class Namespace:
    """kubectl in one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return run("kubectl", "--namespace", self.name, *arguments, stdin=stdin)

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return found

    def pods(self, **labels: str) -> list[dict[str, Any]]:
        """Returns the pods with these labels that are not being deleted; component="learner" is
        app.kubernetes.io/component, and fullname is kubebeast/name.
        """
        names = {"group": "kubebeast/group", "fullname": "kubebeast/name"}
        selector = ",".join(f"{names.get(key, f'app.kubernetes.io/{key}')}={value}" for key, value in labels.items())
        pods = self.get("pods", f"--selector={selector}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def raw(self, pod: str, port: int, path: str) -> str:
        """Returns the pod's answer to an HTTP request."""
        return run("kubectl", "get", "--raw", f"/api/v1/namespaces/{self.name}/pods/{pod}:{port}/proxy{path}")


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def num_restarts(pod: dict[str, Any]) -> int:
    return sum(status["restartCount"] for status in pod["status"]["containerStatuses"])
