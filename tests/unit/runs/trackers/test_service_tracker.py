"""The client of a service has a process of its own, which may print, crash and hang, and leaves nothing behind."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kubebeast_common.backoff import Backoff
from kubebeast_runs.trackers.services import service_tracker
from kubebeast_runs.trackers.services.service_tracker import OUTPUT, ServiceTracker
from kubebeast_runs.trackers.services.trackio_run import TrackioOptions

META = {"xpid": "run", "args": {"seed": 1}, "num_crashes": 0}
FAILS, EXITS, CRASHES, HANGS = 1, 2, 3, 4
"""Steps at which the client of the service misbehaves."""
CLIENT = f"""
import json, os, subprocess, sys, time

def note(*event):
    with open("events", "a") as file:
        print(json.dumps([*event, os.getpid()]), file=file)

class Run:
    name = "run"

    def log(self, numbers, step):
        print("noise of the client", flush=True)
        if step == {FAILS}:
            raise RuntimeError("the service is gone")
        if step == {EXITS}:
            sys.exit("no key")
        if step == {CRASHES}:
            os._exit(3)
        if step == {HANGS}:
            note("child", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid)
            time.sleep(3600)
        note("log", step, numbers)

    def finish(self):
        note("finish")

def init(**arguments):
    note("init", arguments["resume"])
    if os.path.exists("refuses"):
        raise PermissionError("no key")
    return Run()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of a run, the working directory, with a client of Trackio that misbehaves."""
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "trackio.py").write_text(CLIENT)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "json.py").write_text("raise RuntimeError('a file of the working directory')")
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "clients"))
    monkeypatch.setattr(service_tracker, "Backoff", lambda **limits: Backoff(first_s=0.0, limit_s=0.0))
    return tmp_path / "run"


@pytest.fixture
def tracker(folder: Path) -> Iterator[ServiceTracker]:
    made = ServiceTracker("trackio", TrackioOptions(), folder)
    yield made
    made.abandon()


def events(folder: Path) -> list[list[Any]]:
    path = folder / "events"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def kinds(folder: Path) -> list[str]:
    return [event[0] for event in events(folder)]


def pids(folder: Path) -> set[int]:
    """Returns the processes that were noted: those of the tracker, and their children."""
    found = events(folder)
    return {event[-1] for event in found} | {event[1] for event in found if event[0] == "child"}


def living(folder: Path) -> list[psutil.Process]:
    """Returns those of `pids` that have not ended; the entry of an orphan may stay as a zombie."""
    found = []
    for pid in pids(folder):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_rows_reach_the_client_and_its_output_a_file(
    folder: Path, tracker: ServiceTracker, capfd: pytest.CaptureFixture[str]
) -> None:
    tracker.begin(META)
    tracker.log(80, {"total_loss": 0.5, "sps": None, "grad_norm": math.nan, "episode_returns": (1.0, 2.0)})
    for _ in range(2):
        tracker.end(successful=True)
    assert [event[:-1] for event in events(folder)] == [
        ["init", "never"],
        ["log", 80, {"losses/total_loss": 0.5}],
        ["finish"],
    ]
    assert (folder / OUTPUT).read_text() == "noise of the client\n"
    assert capfd.readouterr() == ("", "")
    assert living(folder) == []


@pytest.mark.parametrize(
    ("step", "message"), [(FAILS, "RuntimeError: the service is gone"), (EXITS, "SystemExit: no key")]
)
def test_an_error_of_the_client_fails_one_row(folder: Path, tracker: ServiceTracker, step: int, message: str) -> None:
    tracker.begin(META)
    with pytest.raises(OSError, match=message):
        tracker.log(step, {})
    tracker.log(80, {})
    assert kinds(folder) == ["init", "log"]


def test_a_client_that_crashes_is_replaced_and_goes_on_with_its_run(folder: Path, tracker: ServiceTracker) -> None:
    tracker.begin(META)
    with pytest.raises(OSError, match=r"its process ended with status 3 \(output in .*trackers.log\)"):
        tracker.log(CRASHES, {})
    tracker.log(80, {})
    assert [event[:2] for event in events(folder)] == [["init", "never"], ["init", "allow"], ["log", 80]]


def test_a_client_that_hangs_is_killed_with_its_children(folder: Path) -> None:
    tracker = ServiceTracker("trackio", TrackioOptions(timeout_s=2.0), folder)
    tracker.begin(META)
    with pytest.raises(OSError, match="no answer for 2 s"):
        tracker.log(HANGS, {})
    assert kinds(folder) == ["init", "child"]
    assert living(folder) == []
    tracker.end(successful=False)
    assert kinds(folder) == ["init", "child", "init", "finish"]


def test_a_run_that_cannot_begin_is_tried_again_after_a_while(
    folder: Path, tracker: ServiceTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "_backoff", Backoff(first_s=3600.0, limit_s=3600.0))
    (folder / "refuses").touch()
    with pytest.raises(OSError, match="PermissionError: no key"):
        tracker.begin(META)
    for step in (80, 160):
        with pytest.raises(OSError, match="PermissionError: no key"):
            tracker.log(step, {})
    assert kinds(folder) == ["init"]

    (folder / "refuses").unlink()
    monkeypatch.setattr(tracker, "_retry_at", time.monotonic())
    tracker.log(240, {})
    assert kinds(folder) == ["init", "init", "log"]


def test_the_end_of_a_run_that_could_not_begin_is_no_success(folder: Path, tracker: ServiceTracker) -> None:
    (folder / "refuses").touch()
    with pytest.raises(OSError, match="PermissionError: no key"):
        tracker.begin(META)
    with pytest.raises(OSError, match="PermissionError: no key"):
        tracker.end(successful=True)
    assert living(folder) == []


def test_a_tracker_of_a_run_that_never_begins_leaves_no_process(folder: Path, tracker: ServiceTracker) -> None:
    (process,) = [
        each for each in psutil.Process().children() if "kubebeast_runs.trackers.services.host" in each.cmdline()
    ]
    tracker.end(successful=False)
    assert not process.is_running()
    assert kinds(folder) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from kubebeast_runs.trackers.services.service_tracker import ServiceTracker
from kubebeast_runs.trackers.services.trackio_run import TrackioOptions

tracker = ServiceTracker("trackio", TrackioOptions(), Path.cwd())
tracker.begin({"xpid": "run", "args": {}})
tracker.log(80, {})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_run_of_a_killed_learner_is_finished_by_the_process_of_its_tracker(folder: Path) -> None:
    learner = subprocess.run([sys.executable, "-P", "-c", KILLED], cwd=folder, env=os.environ, timeout=60)
    assert learner.returncode == -signal.SIGKILL
    psutil.wait_procs(living(folder), timeout=60)
    assert kinds(folder) == ["init", "log", "finish"]
    assert living(folder) == []
