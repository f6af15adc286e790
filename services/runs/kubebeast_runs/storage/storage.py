"""The interface of a storage."""

from collections.abc import Callable, Sequence
from io import BufferedIOBase, RawIOBase
from typing import NamedTuple, Protocol


class StoredFile(NamedTuple):
    """A file in a storage."""

    name: str
    num_bytes: int
    saved_at_ns: int
    """Time of the save in nanoseconds since 1970."""
    version: str
    """Differs if the file was replaced by another one of the same name."""


class Storage(Protocol):
    """Files of one run by name, in a folder or below a prefix of a bucket. For one thread; others may change the files.

    All methods may raise OSError.
    """

    def place(self, name: str) -> str:
        """Returns the path or URL of a file, for messages."""

    def files(self) -> Sequence[StoredFile]:
        """Returns all files, even unfinished ones; none if nothing was saved yet. Folders and devices are left out."""

    def open(self, name: str) -> RawIOBase | BufferedIOBase:
        """Opens a file for reading; the result is seekable."""

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Writes a file, durably at return. A crash at any moment leaves the file of before, or the new one."""

    def delete(self, name: str) -> None:
        """Deletes a file, if there is one."""

    def delete_unfinished(self, is_own: Callable[[str], bool]) -> None:
        """Deletes the remains of writes of killed processes, if `is_own` returns True for the name of the file."""
