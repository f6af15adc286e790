"""Free space on the volume of a run's folder."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from kubebeast_common.volume import is_full

logger = logging.getLogger(__name__)

POLL_S = 5.0
"""Time between two checks for space."""
LEAST_BYTES = 1 << 20
"""Minimum space for a run to begin, even if its checkpoints are smaller."""
PROBE = ".room"
"""File that each check writes and removes: only a write shows the effect of quotas and limits."""


class Volume(NamedTuple):
    free_bytes: int
    """Space that is available to the process."""
    size_bytes: int


def volume_of(folder: Path) -> Volume | None:
    """Returns the volume of a folder; None if the folder is gone."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return Volume(status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize)


def require_room(folder: Path, num_bytes: int) -> None:
    """Raises OSError unless a file of `num_bytes` can be written into the folder."""
    path = folder / PROBE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, max(1, num_bytes))
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


class RoomWait:
    """A repeated check for space, with one message if there is none and one if there is some again."""

    def __init__(self, folder: Path, num_bytes: int) -> None:
        self._folder = folder
        self._num_bytes = max(LEAST_BYTES, num_bytes)
        self._is_waiting = False

    def look(self) -> bool:
        """Returns True if there is room. Raises OSError if the reason is not temporary."""
        try:
            require_room(self._folder, self._num_bytes)
        except OSError as error:
            if not is_full(error):
                raise
            if not self._is_waiting:
                text = "%s has no room for a checkpoint of %s: %s; waiting until it has, SIGTERM ends the wait"
                logger.warning(text, self._folder, decimal(self._num_bytes), error.strerror)
            self._is_waiting = True
            return False
        if self._is_waiting:
            logger.warning("%s has room again", self._folder)
        self._is_waiting = False
        return True

    def wait(self, stop: threading.Event, note_turn: Callable[[], None]) -> bool:
        """Blocks until there is room; returns False if stopped before. `note_turn` is called before every check."""
        while True:
            note_turn()
            if self.look():
                return True
            if stop.wait(POLL_S):
                return False
