"""Atomic writing of files: a file is complete or does not exist, even after a crash."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

SUFFIX = ".tmp"
"""Suffix of a file during writing. Such a file left by a killed process is useless."""


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Replaces the file `path` by `content`, as `create_atomically` does."""
    with create_atomically(path) as file:
        write_all(file, content)


@contextmanager
def create_atomically(path: Path) -> Iterator[FileIO]:
    """Opens a file that replaces `path` at the end of the context, durably on disk.

    A crash at any moment leaves the old file or the new one. Raises OSError, e.g. if the disk is full. An error, also
    one in the context, removes the unfinished file.
    """
    unfinished = path.with_name(path.name + SUFFIX)
    try:
        with open(unfinished, "wb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _fsync_folder(path.parent)


def write_all(file: FileIO, content: bytes | memoryview) -> None:
    """Writes all of `content`: a single write may take only a part of it, e.g. 2 GiB on Linux. Raises OSError."""
    rest = memoryview(content).cast("B")
    while rest:
        rest = rest[file.write(rest) :]


def _fsync_folder(folder: Path) -> None:
    """Makes a rename inside `folder` durable, even after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
