"""Files that are there whole or not at all, whatever happens while they are written."""

import os
from pathlib import Path

SUFFIX = ".tmp"
"""Of a file that is being written; one that a killed process left is of no use to anybody."""


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Replaces `path` by `content`, on the disk when this returns.

    A crash at any moment leaves the old file or the new one. OSError when the disk is full; nothing new is left then.
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
    """Makes a rename inside `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
