"""Logs that grow on this machine are the same in the bucket, in few pieces."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_common.atomic_file import write_atomically
from kubebeast_runs.bucket.log_uploads import LogUploads
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import take_lease
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.bucket.storage import BucketStorage
from kubebeast_runs.parts import TRAINING

KINDS = ("append", "append in part", "replace", "sync")


def own(bucket: Bucket) -> BucketStorage:
    return BucketStorage(bucket, "run", take_lease(bucket, "run", TRAINING, threading.Event().wait))


def contents(bucket: Bucket, folder: Path) -> dict[str, bytes]:
    """Downloads all files into a folder, and returns their contents."""
    RunFiles(bucket, "run").fetch(folder, lambda name: True)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def append(path: Path, content: bytes) -> None:
    with open(path, "ab") as file:
        file.write(content)


def test_what_grows_is_uploaded_once_and_what_is_replaced_as_a_whole(bucket: Bucket, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "tensorboard").mkdir(parents=True)
    storage = own(bucket)
    uploads = LogUploads(folder, storage)
    append(folder / "logs.csv", b"# step\n" * 100)
    append(folder / "tensorboard/events.out.tfevents.1", b"\0event")
    write_atomically(folder / "meta.json", b"{1}")
    append(folder / ".lock", b"process 1")
    append(folder / "meta.json.tmp", b"half")
    uploads.sync()
    append(folder / "logs.csv", b"1\n2")  # the second row is still being written
    write_atomically(folder / "meta.json", b"{1234567}")
    uploads.sync()
    found = storage.manifest().files
    assert [piece.num_bytes for piece in found["logs.csv"].pieces] == [700, 2]
    assert [piece.num_bytes for piece in found["meta.json"].pieces] == [9]
    expected = {
        "logs.csv": b"# step\n" * 100 + b"1\n",
        "tensorboard/events.out.tfevents.1": b"\0event",
        "meta.json": b"{1234567}",
    }
    assert contents(bucket, tmp_path / "copy") == expected
    (folder / "meta.json").unlink()
    uploads.sync()
    assert sorted(storage.manifest().files) == ["logs.csv", "tensorboard/events.out.tfevents.1"]


def test_nothing_new_costs_no_request(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = own(bucket)
    append(tmp_path / "logs.csv", b"before\n")
    uploads = LogUploads(tmp_path, storage)
    append(tmp_path / "logs.csv", b"after\n")
    storage.commit({"logs.csv": (storage.upload("logs.csv", b"before\n"),)})
    uploads.sync()
    monkeypatch.setattr(Bucket, "write", None)
    monkeypatch.setattr(Bucket, "replace", None)
    uploads.sync()
    assert contents(bucket, tmp_path / "copy") == {"logs.csv": b"before\nafter\n"}


def test_another_process_goes_on_with_the_same_files(bucket: Bucket, tmp_path: Path) -> None:
    for life in range(4):
        folder = tmp_path / str(life)
        folder.mkdir()
        storage = own(bucket)
        storage.fetch(folder, lambda name: not name.startswith("tensorboard/"))
        uploads = LogUploads(folder, storage)
        append(folder / "logs.csv", f"{life}\n".encode())
        (folder / "tensorboard").mkdir()
        append(folder / f"tensorboard/events.out.tfevents.{life}", b"x")
        uploads.sync()
    found = contents(bucket, tmp_path / "copy")
    assert found["logs.csv"] == b"0\n1\n2\n3\n" and len(found) == 5


@settings(deadline=None, max_examples=60)
@given(
    changes=st.lists(st.tuples(st.sampled_from(["append", "append in part", "replace", "sync"]), st.integers(1, 400)))
)
def test_the_copy_is_equal_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    bucket, path = Bucket(f"memory://{folder}"), folder / "logs.csv"
    uploads = LogUploads(folder, own(bucket))
    for kind, size in changes:
        line = os.urandom(size).hex().encode()
        if kind == "sync":
            uploads.sync()
            continue
        if path.exists():  # what a failed write has left is cut off before the next one
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        if kind == "replace":
            write_atomically(path, line + b"\n")
        else:
            append(path, line + b"\n" * (kind == "append"))
    uploads.sync()
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    assert contents(bucket, tmp_path_factory.mktemp("copy")).get("logs.csv", b"") == whole


def test_a_long_run_has_few_pieces_and_uploads_little_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket("memory://long")
    storage, sizes, write = own(bucket), [], Bucket.write

    def count(self: Bucket, key: str, content: bytes) -> None:
        sizes.append(len(content))
        write(self, key, content)

    monkeypatch.setattr(Bucket, "write", count)
    uploads = LogUploads(tmp_path, storage)
    for _ in range(1000):
        append(tmp_path / "logs.csv", b"x" * 99 + b"\n")
        uploads.sync()
    assert len(storage.manifest().files["logs.csv"].pieces) <= 12
    assert sum(sizes) <= 15 * 100_000
