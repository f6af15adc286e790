"""Locks of a run: one process at a time trains it, and one at a time plays its checkpoints."""

import contextlib
import errno
import fcntl
import logging
import os
import socket
from pathlib import Path
from typing import BinaryIO, Literal

from kubebeast_common.settings import ConfigError

logger = logging.getLogger(__name__)

NAMES = {"trains": ".lock", "follows": ".eval.lock"}
"""Names of the lock files, by the activity of their holder."""


def lock_run(folder: Path, deed: Literal["trains", "follows"] = "trains") -> BinaryIO:
    """Locks a run for one activity until the returned file is closed or the process ends in any way.

    Never blocks. If the file system has no locks, a warning is logged and the file is returned without a lock. On a
    full volume only the name of the holder is missing from the file.

    Raises:
        ConfigError: If another process holds the lock. The message names the run and the holder.
        OSError: If the file cannot be opened.
    """
    file = open(folder / NAMES[deed], "a+b", buffering=0)  # noqa: SIM115 - closed by the caller
    try:
        # Not flock: its locks are inherited, and children that outlive a killed learner would keep the lock.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            logger.warning("%s cannot be locked: %s; start nothing else that %s this run", folder, error, deed)
            return file
        file.seek(0)
        holder = file.read().decode(errors="replace").strip()
        file.close()
        raise ConfigError(
            f"xpid = {folder.name!r}: {holder or 'another process'} {deed} this run; stop it or choose another xpid"
        ) from error
    with contextlib.suppress(OSError):
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
    return file
