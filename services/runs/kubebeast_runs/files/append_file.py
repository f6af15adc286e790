"""Files that grow by whole records: a failed write leaves no partial record."""

import contextlib
import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO with this name must not block


class AppendFile:
    """A file of records, for one writer and one thread at a time. The first record creates the file.

    After an error the next record reopens it: the volume may have been mounted again, or the folder restored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._inode: int | None = None
        self._size = 0
        """Bytes up to the end of the last whole record."""

    def is_empty(self) -> bool:
        """Returns True if the next record is the file's first. Raises OSError if the file cannot be opened."""
        self._opened()
        return self._size == 0

    def append(self, record: bytes) -> None:
        """Appends all of `record` or, with an OSError, nothing.

        A partial record is truncated at once or before the next record.
        """
        descriptor = self._opened()
        try:
            rest = memoryview(record)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError:
            self._cut_off(descriptor)
            raise
        self._size += len(record)

    def close(self) -> None:
        """Closes the file; idempotent. Raises OSError if the volume reports a write error only now, as NFS does."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _opened(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        descriptor = os.open(self._path, _FLAGS, 0o666)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", str(self._path))
            if status.st_ino == self._inode and status.st_size > self._size:
                os.ftruncate(descriptor, self._size)
            else:
                self._inode, self._size = status.st_ino, status.st_size
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return descriptor

    def _cut_off(self, descriptor: int) -> None:
        """Truncates the file to its last whole record. If that fails, the next open does it."""
        self._descriptor = None
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, self._size)
        with contextlib.suppress(OSError):
            os.close(descriptor)
