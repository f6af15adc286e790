"""On a full volume a run log holds whole rows only, warns once, and resumes if there is room again."""

import errno
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kubebeast_runs.folder import folder_of
from kubebeast_runs.log import RunLog
from tests.unit.runs.files.scarce_volume import ScarceVolume
from tests.unit.runs.test_run_log import read, read_by_header


def test_rows_of_a_full_volume_are_dropped_whole_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    volume = ScarceVolume(tmp_path, monkeypatch)
    with RunLog(tmp_path, "run") as log:
        log.record({"unroll_length": 20})
        log.log({"step": 1, "loss": 1.0})
        volume.free_bytes = 15
        for step in (2, 3):
            log.log({"step": step, "loss": 2.0, "grown": 5})
            logging.getLogger("anything").warning("a message, too")
        volume.free_bytes = float("inf")
        log.log({"step": 4, "loss": 4.0, "grown": 5})
    assert read_by_header(log.folder) == {
        **read_by_header(log.folder),
        "_tick": [0, 1],
        "step": [1, 4],
        "loss": [1.0, 4.0],
        "grown": [5],
    }
    assert (log.folder / "fields.csv").read_text().splitlines()[-1] == "_tick,_time,step,loss,grown"
    events = EventAccumulator(str(log.folder / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("run/loss")] == [(1, 1.0), (4, 4.0)]
    assert (log.failures.counts["logs.csv"], log.failures.counts["tensorboard"]) == (2, 2)
    first, last = (text for text in caplog.messages if "a message" not in text)
    assert "logs.csv is not written: No space left on device; the run goes on" in first
    assert "can be written again; failed writes: 2 of logs.csv, 2 of tensorboard" in last
    assert all(line.startswith("[") for line in (log.folder / "out.log").read_text().splitlines())


def test_whole_files_are_written_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with RunLog(tmp_path, "run") as log:
        with monkeypatch.context() as patch:
            patch.setattr("kubebeast_runs.log.write_atomically", full)
            log.record({"unroll_length": 20})
            log.note_environment("Pong", None)
            log.log({"step": 1})
        assert not (log.folder / "meta.json").exists() and not (tmp_path / "latest").exists()
        log.log({"step": 2})
        assert json.loads((log.folder / "meta.json").read_text())["environment"] == {"env": "Pong"}
    assert (log.folder / "config.yaml").read_text() == "unroll_length: 20\n"
    assert folder_of(str(tmp_path), "latest") == log.folder


def test_a_lock_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to("/dev/full")
    with RunLog(tmp_path, "run") as log:
        log.record({})
    assert (log.folder / "meta.json").is_file()


FULL_DISK = """
import logging, resource, sys
from pathlib import Path
from kubebeast_runs.log import RunLog
logging.basicConfig(level="INFO", format="%(message)s")
with RunLog(Path(sys.argv[1]), "run") as log:
    log.record({})
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, most))
    for step in range(1000):
        logging.info("a line of out.log")
        log.log({"step": step, "loss": 0.5})
print(min(log.failures.counts[name] for name in ("logs.csv", "tensorboard", "out.log")) > 500)
"""


def test_a_limit_of_each_file_ends_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout) == (0, "True\n"), process.stderr
    warnings = [line for line in process.stderr.splitlines() if line != "a line of out.log"]
    assert "is not written: File too large" in warnings[0]
    assert len(warnings) < 20  # a shorter row may fit again
    assert len(read(tmp_path / "run")) > 10
    assert all(row["loss"] == "0.5" for row in read(tmp_path / "run"))
