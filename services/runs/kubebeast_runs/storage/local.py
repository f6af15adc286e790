"""A folder on this machine, or on a volume that it mounts, as a storage."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from io import FileIO, RawIOBase
from pathlib import Path

from kubebeast_common.atomic_file import SUFFIX, create_atomically
from kubebeast_runs.storage.storage import StoredFile


class LocalStorage:
    """The files of a folder, which the first write creates. Folders, FIFOs and devices in it are no files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place(self, name: str) -> str:
        return str(self._folder / name)

    def files(self) -> Sequence[StoredFile]:
        if not self._folder.is_dir():
            return []
        found = (_stored(path) for path in self._folder.iterdir())
        return [file for file in found if file is not None]

    def open(self, name: str) -> RawIOBase:
        return open(self._folder / name, "rb", buffering=0)

    def create(self, name: str) -> AbstractContextManager[FileIO]:
        self._folder.mkdir(parents=True, exist_ok=True)
        return create_atomically(self._folder / name)

    def delete(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def delete_unfinished(self, is_own: Callable[[str], bool]) -> None:
        for file in self.files():
            if file.name.endswith(SUFFIX) and is_own(file.name.removesuffix(SUFFIX)):
                self.delete(file.name)


def _stored(path: Path) -> StoredFile | None:
    """Describes a file that opens without blocking; None for anything else, and if it has vanished meanwhile."""
    try:
        if not path.is_file():
            return None
        status = path.stat()
    except OSError:
        return None
    version = f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
    return StoredFile(path.name, status.st_size, status.st_mtime_ns, version)
