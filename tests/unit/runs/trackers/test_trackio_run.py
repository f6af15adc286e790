"""A run of Trackio outlives its server: the numbers stay on the disk, and the failure is reported."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from harness.ports import free_port
from kubebeast_runs.trackers.services.service_tracker import ServiceTracker
from kubebeast_runs.trackers.services.trackio_run import TrackioOptions


def test_numbers_that_a_server_does_not_take_stay_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    (tmp_path / "run").mkdir()
    server = f"http://127.0.0.1:{free_port()}/?write_token=secret"
    tracker = ServiceTracker("trackio", TrackioOptions(server_url=server, timeout_s=300), tmp_path / "run")
    tracker.begin({"xpid": "run", "args": {"seed": 1}})
    with pytest.raises(OSError, match="Connection refused"):
        tracker.log(80, {"sps": 10.0})
    with pytest.raises(OSError, match="Some logs could not be sent to the remote server"):
        tracker.end(successful=True)
    with contextlib.closing(sqlite3.connect(tmp_path / "trackio" / "kubebeast.db")) as store:
        assert store.execute("SELECT step FROM metrics").fetchall() == [(80,)]
