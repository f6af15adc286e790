"""Atomic writing of files: a file is complete or does not exist, even after a crash."""

import os
from pathlib import Path

SUFFIX = ".tmp"
"""Suffix of a file during writing. Such a file left by a killed process is useless."""


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Replaces the file `path` by `content`, durably on disk at return.

    A crash at any moment leaves the old file or the new one. Raises OSError, e.g. if the disk is full, and removes the
    unfinished file.
    """
    unfinished = path.with_name(path.name + SUFFIX)
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _fsync_folder(path.parent)


def _fsync_folder(folder: Path) -> None:
    """Makes a rename inside `folder` durable, even after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
