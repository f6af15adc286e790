"""The interfaces of a storage: to read, and to write too."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from io import BufferedIOBase, FileIO, RawIOBase
from typing import NamedTuple, Protocol


class StoredFile(NamedTuple):
    """A file in a storage."""

    name: str
    num_bytes: int
    saved_at_ns: int
    """Time of the save in nanoseconds since 1970."""
    version: str
    """Differs if the file was replaced by another one of the same name."""


class Files(Protocol):
    """Files of one run by name, in a folder or a bucket. For one thread; others may change the files.

    All methods may raise OSError.
    """

    def place(self, name: str) -> str:
        """Returns the path or URL of a file, for messages."""

    def files(self) -> Sequence[StoredFile]:
        """Returns all files, even unfinished ones; none if nothing was saved yet. Folders and devices are left out."""

    def open(self, name: str) -> RawIOBase | BufferedIOBase:
        """Opens a file for reading; the result is seekable."""


class Storage(Files, Protocol):
    """Files that the process of the run also writes."""

    def create(self, name: str) -> AbstractContextManager[FileIO]:
        """Opens a file for writing from its begin to its end. It replaces the one of before, durably, at the end of
        the context; a crash at any moment, or an error in the context, leaves the one of before.
        """

    def delete(self, name: str) -> None:
        """Deletes a file, if there is one."""

    def delete_unfinished(self, is_own: Callable[[str], bool]) -> None:
        """Deletes the remains of writes of killed processes, if `is_own` returns True for the name of the file."""
