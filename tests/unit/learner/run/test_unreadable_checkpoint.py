"""Without proof of damage the newest checkpoint is neither skipped nor deleted, and other files are left alone."""

import errno
import io
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import CheckpointError, load_path
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.run.test_checkpoint import names, save, state, steps


class FailingStorage(LocalStorage):
    """A folder whose files cannot be opened, or read at one byte."""

    at_opening: OSError | None = None
    at_byte: tuple[int, OSError] | None = None

    def open(self, name: str) -> io.RawIOBase:
        if self.at_opening is not None:
            raise self.at_opening
        file = super().open(name)
        return file if self.at_byte is None else FailingFile(file, *self.at_byte)


class FailingFile(io.RawIOBase):
    def __init__(self, file: io.RawIOBase, at_byte: int, error: OSError) -> None:
        self._file, self._at_byte, self._error = file, at_byte, error

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int | None:
        if self._file.tell() <= self._at_byte < self._file.tell() + len(buffer):
            raise self._error
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def foreign(folder: Path, name: str) -> list[Path]:
    """Makes files that are not the store's although they have names of its form."""
    made = {kind: folder / name.format(number) for number, kind in enumerate(("folder", "fifo", "link", "device"), 900)}
    made["folder"].mkdir()
    os.mkfifo(made["fifo"])
    made["link"].symlink_to("nowhere")
    made["device"].symlink_to("/dev/zero")
    sockets = folder / name.format(999)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(sockets))
    return [*made.values(), sockets]


@pytest.mark.parametrize("name", ["checkpoint-{:012d}.pt", "checkpoint-{:012d}.pt.tmp"])
def test_folders_fifos_sockets_links_and_devices_of_such_a_name_are_left_alone(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path may have 108 bytes
    others = foreign(tmp_path, name)
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    assert store.load_newest() is None
    for step in (1, 2):
        store.save(state(step))
    found = store.load_newest()
    assert found is not None and found[1]["step"] == 2 and steps(store) == [2]
    assert all(os.path.lexists(path) for path in others)


def test_files_of_people_are_left_alone(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    save(store, state(1)).rename(tmp_path / "checkpoint-1.pt")
    others = {"checkpoint-best.pt", "checkpoint-best.pt.tmp", "model.tar.tmp", "checkpoint-2.pt.tmp", "checkpoint-1.pt"}
    for name in others - {"checkpoint-1.pt"}:
        (tmp_path / name).write_bytes(b"mine")
    for step in (3, 4):
        store.save(state(step))
    assert set(names(tmp_path)) == others | {"checkpoint-000000000004.pt", "weights.safetensors"}


def unsupported(path: Path) -> None:
    torch.save(torch.load(path, weights_only=True) | {"format": checkpoint.FORMAT + 1}, path)


def of_another_kind(path: Path) -> None:
    path.write_bytes(b"a container of a later version")


def incomplete(path: Path) -> None:
    torch.save({"step": 3}, path)


def with_code(path: Path) -> None:
    torch.save(state(3, extra=Path("a class that weights_only refuses")), path)


def compressed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("change", [unsupported, of_another_kind, incomplete, with_code, compressed])
def test_a_newest_that_is_not_proven_damaged_stops_the_run_and_is_never_deleted(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    store.save(state(2))
    newest = tmp_path / "checkpoint-000000000003.pt"
    newest.write_bytes((tmp_path / "checkpoint-000000000002.pt").read_bytes())
    change(newest)
    with pytest.raises(CheckpointError, match=f"{newest}.* neither passed over nor deleted: .* move it out"):
        store.load_newest()
    store.save(state(2))
    assert newest.exists() and steps(store) == [3, 2]


@pytest.mark.parametrize("error", [errno.EACCES, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE])
def test_a_newest_that_cannot_be_opened_now_stops_the_run(tmp_path: Path, error: int) -> None:
    newest = save(CheckpointStore(LocalStorage(tmp_path), keep=1), state(1))
    storage = FailingStorage(tmp_path)
    store = CheckpointStore(storage, keep=1)
    storage.at_opening = OSError(error, os.strerror(error), str(newest))

    with pytest.raises(CheckpointError, match=f"{os.strerror(error)}.*not proven damaged"):
        store.load_newest()
    storage.at_opening = None
    assert newest.exists() and store.load_newest() is not None


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE])
def test_a_newest_with_a_block_that_cannot_be_read_now_stops_the_run_and_is_kept(
    tmp_path: Path, error: int, share: float
) -> None:
    storage = FailingStorage(tmp_path)
    store = CheckpointStore(storage, keep=1)
    store.save(state(1))
    newest = save(store, state(2))
    storage.at_byte = int(share * (newest.stat().st_size - 1)), OSError(error, os.strerror(error))

    with pytest.raises(CheckpointError, match=f"{os.strerror(error)}.*not proven damaged"):
        store.load_newest()
    storage.at_byte = None
    store.save(state(1))
    assert newest.exists() and store.load_newest() is not None


def test_a_newest_for_which_memory_is_lacking_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    newest = save(store, state(1))

    def fail(path: Path, **options: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(CheckpointError, match=f"{newest} cannot be read: MemoryError"):
        store.load_newest()
    store.save(state(0))
    assert newest.exists()


def test_a_damaged_file_that_somebody_has_replaced_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=2)
    store.save(state(1))
    newest = save(store, state(2))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:100])
    store.load_newest()
    (tmp_path / "restored").write_bytes(whole)
    (tmp_path / "restored").rename(newest)
    store.save(state(1))
    assert steps(store) == [2, 1]


def test_old_files_that_cannot_be_deleted_cost_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    store.save(state(1))

    def fail(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "unlink", fail)
    store.save(state(2))
    assert steps(store) == [2, 1] and "not deleted: [Errno 5]" in caplog.text


def test_a_tensor_of_more_memory_than_the_file_has_is_refused(tmp_path: Path) -> None:
    path = save(CheckpointStore(LocalStorage(tmp_path), keep=1), state(1))
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            number, larger = (b"M" + value.to_bytes(2, "little") for value in (1000, 60000))
            archive.writestr(name, content.replace(number, larger) if name.endswith("data.pkl") else content)
    with pytest.raises(CheckpointError, match=f"{path} cannot be read: "):
        load_path(path)
