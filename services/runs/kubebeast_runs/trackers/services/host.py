"""Main program of a service's process: calls the client of the service, as the tracker asks.

host.py SERVICE FOLDER OPTIONS LEARNER_PID DESCRIPTOR

A call is a tuple of the method's name and its arguments by name; its answer is the text of the error, "" for none.
"""

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kubebeast_common.process.family import kill_own_family
from kubebeast_common.process.leaving import leave, leave_with_parent
from kubebeast_common.process.output import outlive_full_volume
from kubebeast_common.user_code import message
from kubebeast_runs.trackers.services.choice import SERVICES, ServiceRun
from kubebeast_runs.trackers.services.options import parse_options
from kubebeast_runs.weights import read_metadata


def main() -> None:
    name, folder, given, learner_pid, descriptor = sys.argv[1:]
    service = SERVICES[name]
    options = parse_options(name, service.options, json.loads(given))
    outlive_full_volume()
    leave_with_parent(int(learner_pid), options.timeout_s, last=kill_own_family)
    _serve(Connection(int(descriptor)), lambda: service.run(Path(folder), options, int(learner_pid)))
    leave(0, last=kill_own_family)


def _serve(calls: Connection, make: Callable[[], ServiceRun]) -> None:
    """Answers calls until the last one. If the learner is killed, the run ends as failed."""
    run: ServiceRun | None = None
    broken = ""
    try:
        run = make()
    except BaseException as error:  # a library may raise SystemExit, too
        broken = _text(error)
    method = ""
    while method != "end":
        try:
            method, arguments = calls.recv()
        except (EOFError, OSError):
            method, arguments = "end", {"successful": False}
        answer = broken if run is None else _answer(run, method, arguments)
        with contextlib.suppress(OSError):
            calls.send(answer)


def _answer(run: ServiceRun, method: str, arguments: Mapping[str, Any]) -> str:
    try:
        if method == "artifact":
            _upload(run, arguments["path"])
        else:
            getattr(run, method)(**arguments)
    except BaseException as error:  # as above
        return _text(error)
    return ""


def _upload(run: ServiceRun, path: Path) -> None:
    """Uploads a copy, because a checkpoint may replace the file meanwhile: its own step is that of the copy."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))
        run.artifact(int(read_metadata(copy)["step"]), copy)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {message(error)}"


if __name__ == "__main__":
    main()
