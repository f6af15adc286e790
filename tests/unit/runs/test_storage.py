"""Folders and buckets keep the promises of a storage."""

import os
import threading
from pathlib import Path

import pytest

from kubebeast_common.atomic_file import SUFFIX
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import take_lease
from kubebeast_runs.bucket.storage import BucketStorage
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.parts import TRAINING
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Storage


@pytest.fixture(params=["folder", "s3", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalStorage(tmp_path / "run")
    url = f"memory://{request.node.nodeid}"
    bucket = Bucket(request.getfixturevalue("url") if request.param == "s3" else url)
    return BucketStorage(bucket, "run", take_lease(bucket, "run", TRAINING, threading.Event().wait))


def write(storage: Storage, name: str, content: bytes) -> None:
    with storage.create(name) as file:
        file.write(content)


def read(storage: Storage, name: str) -> bytes:
    with storage.open(name) as file:
        return file.read() or b""


def test_files_are_listed_read_replaced_and_deleted(storage: Storage) -> None:
    assert storage.files() == []
    write(storage, "a", b"first")
    (before,) = storage.files()
    write(storage, "a", b"second")
    write(storage, "b", b"")
    after = {file.name: file for file in storage.files()}

    assert (before.name, before.num_bytes) == ("a", 5)
    assert {name: file.num_bytes for name, file in after.items()} == {"a": 6, "b": 0}
    assert before.version != after["a"].version and before.saved_at_ns <= after["a"].saved_at_ns
    assert read(storage, "a") == b"second" and storage.place("a").endswith("/run/a")
    storage.delete("a")
    storage.delete("a")
    assert [file.name for file in storage.files()] == ["b"]


def test_an_error_while_a_file_is_written_leaves_the_one_of_before(storage: Storage) -> None:
    write(storage, "a", b"first")
    with pytest.raises(TypeError), storage.create("a") as file:
        file.writelines([b"sec", "no bytes"])  # type: ignore[list-item]
    assert [file.name for file in storage.files()] == ["a"] and read(storage, "a") == b"first"


def test_a_file_can_be_read_from_any_place(storage: Storage) -> None:
    write(storage, "a", b"0123456789")
    with storage.open("a") as file:
        assert file.seekable() and file.seek(-3, os.SEEK_END) == 7 and file.read() == b"789"
        assert file.seek(2) == 2 and file.read(2) == b"23"


def test_a_file_that_is_not_there_is_an_error(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        storage.open("missing")


def test_only_unfinished_writes_of_own_names_are_deleted(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for name in ("mine", f"mine{SUFFIX}", f"yours{SUFFIX}"):
        (tmp_path / name).write_bytes(b"half")
    storage.delete_unfinished(lambda name: name == "mine")
    assert {file.name for file in storage.files()} == {"mine", f"yours{SUFFIX}"}


def test_checkpoints_are_listed_by_their_steps(storage: Storage) -> None:
    for name in ("checkpoint-000000000020.pt", "checkpoint-3.pt", "checkpoint-best.pt", "weights.safetensors"):
        write(storage, name, b"")
    found = list_checkpoints(storage)
    assert [(saved.step, saved.is_own) for saved in found] == [(20, True), (3, False)]
