"""Locks of a run: one process at a time trains it, and one of each name plays its checkpoints."""

import contextlib
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kubebeast_common.settings import ConfigError
from kubebeast_runs.parts import TRAINING, Part

logger = logging.getLogger(__name__)


class BusyError(ConfigError):
    """Another process holds the lock or the lease of a run."""


def lock_run(folder: Path, part: Part = TRAINING) -> BinaryIO:
    """Locks a part of a run, as lock_file does. The message of a BusyError names the run and the holder."""
    return lock_file(folder / part.lock, lambda holder: part.refusal(folder.name, holder))


def lock_file(path: Path, refusal: Callable[[str], str]) -> BinaryIO:
    """Locks a file, made if it is missing, until the returned file is closed or the process ends in any way.

    Never blocks. If the file system has no locks, a warning is logged and the file is returned without a lock. On a
    full volume only the name of the holder is missing from the file.

    Args:
        path: The file.
        refusal: Function from the name of the holder to a message.

    Raises:
        BusyError: If another process holds the lock, with the message.
        OSError: If the file cannot be opened.
    """
    file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by the caller
    try:
        # Not flock: its locks are inherited, and children that outlive a killed learner would keep the lock.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            logger.warning("%s cannot be locked: %s; start no second process like this one", path, error)
            return file
        file.seek(0)
        holder = file.read().decode(errors="replace").strip()
        file.close()
        raise BusyError(refusal(holder or "another process")) from error
    with contextlib.suppress(OSError):
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
    return file
