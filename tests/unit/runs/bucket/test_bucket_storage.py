"""Files of a run in a bucket are whole, whatever happens to their writer, the network and the store."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.processes.s3_server import S3Server
from kubebeast_common.settings import ConfigError
from kubebeast_runs.bucket import pointer
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import take_lease
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.bucket.storage import BucketStorage
from kubebeast_runs.parts import TRAINING
from tests.faulty_s3 import Fault, FaultyProxy

CONTENT = bytes(range(256)) * 1000


def own(bucket: Bucket) -> BucketStorage:
    return BucketStorage(bucket, "run", take_lease(bucket, "run", TRAINING, threading.Event().wait))


def write(storage: BucketStorage, name: str, content: bytes) -> None:
    with storage.create(name) as file:
        file.write(content)


def read(files: RunFiles, name: str) -> bytes:
    with files.open(name) as file:
        return file.read()


def test_a_reader_sees_a_file_as_soon_as_it_is_whole(bucket: Bucket) -> None:
    storage, reader = own(bucket), RunFiles(bucket, "run")
    with storage.create("a") as file:
        file.write(CONTENT)
        assert reader.files() == []
    assert read(reader, "a") == CONTENT
    (found,) = reader.files()
    assert found.num_bytes == len(CONTENT) and found.saved_at_ns > 0


def test_a_reader_that_has_begun_with_an_older_file_ends_with_a_whole_one(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, reader = own(bucket), RunFiles(bucket, "run")
    write(storage, "a", b"older")
    download, calls = Bucket.download, itertools.count()

    def replace_first(self: Bucket, key: str, file: object) -> None:
        if next(calls) == 0:
            write(storage, "a", b"newer")
            storage.delete_replaced()
        download(self, key, file)  # type: ignore[arg-type]

    monkeypatch.setattr(Bucket, "download", replace_first)
    assert read(reader, "a") == b"newer"


def test_replaced_pieces_are_deleted_in_the_end_and_those_in_use_are_not(bucket: Bucket) -> None:
    storage = own(bucket)
    for content in (b"1", b"2", b"3"):
        write(storage, "a", content)
    assert len(bucket.keys("run/run")) == 3
    storage.delete_replaced()
    assert len(bucket.keys("run/run")) == 1 and read(RunFiles(bucket, "run"), "a") == b"3"


def test_the_next_holder_deletes_what_no_manifest_names(bucket: Bucket) -> None:
    first = own(bucket)
    write(first, "a", b"whole")
    first.upload("checkpoint-000000000001.pt", b"killed before the manifest named it")
    bucket.write("run/eval/eval.csv/1-x-0", b"of the process that plays")
    second = own(bucket)
    second.upload("b", b"of this process")
    second.delete_unnamed()
    names = sorted(key.split("/")[2] for key in bucket.keys("run/run"))
    assert names == ["a", "b"] and bucket.keys("run/eval")


def test_a_process_that_has_lost_its_lease_changes_nothing(bucket: Bucket) -> None:
    sleeper = own(bucket)
    write(sleeper, "a", b"before")
    heir = own(bucket)
    write(heir, "a", b"after")
    keys = set(bucket.keys("run/run"))
    with pytest.raises(LeaseLostError):
        write(sleeper, "a", b"late")
    with pytest.raises(LeaseLostError):
        sleeper.delete("a")
    with pytest.raises(LeaseLostError):
        sleeper.upload("a", b"late")
    assert read(RunFiles(bucket, "run"), "a") == b"after"
    assert keys <= set(bucket.keys("run/run")), "no piece of the heir is replaced"


@pytest.mark.parametrize("change", [BucketStorage.delete_replaced, lambda storage: storage.upload("a", b"late")])
def test_a_process_whose_lease_may_have_ended_renews_it_before_it_uploads_or_deletes(
    change: Callable[[BucketStorage], object], bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = own(bucket)
    write(sleeper, "a", b"first")
    write(sleeper, "a", b"second")
    own(bucket)
    keys = set(bucket.keys("run"))
    monkeypatch.setattr(pointer, "LEASE_S", 0.0)
    with pytest.raises(LeaseLostError):
        change(sleeper)
    assert set(bucket.keys("run")) == keys


@pytest.mark.parametrize("fault", ["503", "cut", "lost answer"])
def test_every_pointer_leads_to_whole_files_after_any_fault(
    fault: Fault, s3: S3Server, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each request of each write fails once, and a reader looks after every try."""
    with FaultyProxy(s3, lambda method, path: "none") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.server.environment["AWS_ENDPOINT_URL"])
        storage = own(Bucket(url))
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.environment["AWS_ENDPOINT_URL"])
        reader = RunFiles(Bucket(url), "run")
        written: set[bytes] = set()
        for number in range(30):
            content = f"{number:06}".encode() * 50
            written.add(content)
            for failing in itertools.count():
                requests = itertools.count()
                proxy.choose = lambda method, path: fault if next(requests) == failing else "none"  # noqa: B023
                try:
                    write(storage, "a", content)
                    is_done = next(requests) <= failing
                except OSError:
                    is_done = False
                for found in reader.files():
                    assert read(reader, found.name) in written
                if is_done:
                    break
            assert read(reader, "a") == content
        assert proxy.num_faults >= 60


def test_a_store_that_refuses_the_credentials_is_named_with_its_reason(
    s3: S3Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyProxy(s3, lambda method, path: "403") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.server.environment["AWS_ENDPOINT_URL"])
        with pytest.raises(PermissionError, match=r"s3://.*/run/run\.json: .*403"):
            own(Bucket(url))


def test_a_bucket_that_is_missing_is_an_error(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(FileNotFoundError, match=r"s3://bucket-that-is-missing/runs/run/run\.json"):
        own(Bucket("s3://bucket-that-is-missing/runs"))


@pytest.mark.parametrize("url", ["s3://", "s3:///runs", "gs://", "az://"])
def test_a_url_without_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=f"savedir = '{url}': it names no bucket"):
        Bucket(url)
