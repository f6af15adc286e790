"""A run in a bucket belongs to its process until its last files are there, and leaves nothing if it never began."""

import threading
from pathlib import Path

import pytest

from kubebeast_common.settings import ConfigError
from kubebeast_runs.bucket import owned_run, pointer
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.owned_run import OwnedRun
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.names import CHECKPOINTS, META

URL = "memory://owned"


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer, "LEASE_S", 0.5)
    monkeypatch.setattr(pointer, "_POLL_S", 0.02)
    monkeypatch.setattr(owned_run, "RENEWAL_S", 0.05)
    monkeypatch.setattr(owned_run, "RETRY_S", 0.01)


def begin(run: OwnedRun, xpid: str) -> None:
    (run.savedir / xpid / META).write_text("{}")
    run.begin(WriteFailures(run.savedir / xpid))


def test_the_lease_lasts_as_long_as_the_last_files_are_uploaded(monkeypatch: pytest.MonkeyPatch) -> None:
    upload, tried, released = Bucket.write, threading.Event(), threading.Event()

    def fail(self: Bucket, key: str, content: bytes | Path) -> None:
        tried.set()
        if not released.is_set():
            raise OSError("no answer")
        upload(self, key, content)

    def train() -> None:
        with OwnedRun(URL, "slow", threading.Event()) as run:
            begin(run, "slow")
            monkeypatch.setattr(Bucket, "write", fail)

    training = threading.Thread(target=train)
    training.start()
    assert tried.wait(60.0)
    with pytest.raises(ConfigError, match="trains this run"):
        OwnedRun(URL, "slow", threading.Event())
    released.set()
    training.join()
    assert [file.name for file in RunFiles(Bucket(URL), "slow").files()] == [META]
    with OwnedRun(URL, "slow", threading.Event()) as heir:
        assert (heir.savedir / "slow" / META).read_text() == "{}"


def test_the_next_process_goes_on_with_the_logs_and_leaves_the_checkpoints_in_the_bucket() -> None:
    files = ("checkpoint-000000000010.pt", CHECKPOINTS, "weights.safetensors")
    with OwnedRun(URL, "moves", threading.Event()) as run:
        begin(run, "moves")
        for name in files:
            with run.storage.create(name) as file:
                file.write(b"whole")
    with OwnedRun(URL, "moves", threading.Event()) as heir:
        assert [path.name for path in (heir.savedir / "moves").iterdir()] == [META]
        begin(heir, "moves")
    assert {file.name for file in RunFiles(Bucket(URL), "moves").files()} == {META, *files}


def test_a_run_that_never_begins_leaves_nothing() -> None:
    with OwnedRun(URL, "never", threading.Event()) as run:
        run.begin(WriteFailures(run.savedir / "never"))
        (run.savedir / "never" / "out.log").write_text("refused")
        folder = run.savedir
    assert Bucket(URL).keys("never") == [] and not folder.exists()


def test_a_start_that_cannot_read_the_files_gives_the_lease_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with OwnedRun(URL, "unread", threading.Event()) as run:
        begin(run, "unread")

    def fail(self: RunFiles, folder: Path, is_wanted: object) -> None:
        raise OSError("no answer")

    with monkeypatch.context() as failing:
        failing.setattr(RunFiles, "fetch", fail)
        with pytest.raises(OSError, match="no answer"):
            OwnedRun(URL, "unread", threading.Event())
    assert RunFiles(Bucket(URL), "unread").manifest().owner == ""


def test_a_stop_ends_the_attempts_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    stop.set()

    def fail(self: Bucket, key: str, content: bytes | Path) -> None:
        raise OSError("no answer")

    def train() -> None:
        with OwnedRun(URL, "stopped", stop) as run:
            begin(run, "stopped")
            monkeypatch.setattr(Bucket, "write", fail)

    with pytest.raises(OSError, match="no answer"):
        train()
