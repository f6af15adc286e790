"""One process at a time trains a run, and one at a time plays its checkpoints."""

import errno
import fcntl
import logging
import os
import socket
from pathlib import Path
from typing import Literal, TextIO

from kubebeast_learner.config import ConfigError

logger = logging.getLogger(__name__)

NAMES = {"trains": ".lock", "follows": ".eval.lock"}
"""Of the files that are locked, by what their holder does."""


def lock_run(folder: Path, deed: Literal["trains", "follows"] = "trains") -> TextIO:
    """Takes the deed until the file it returns is closed or the process ends, however it ends.

    ConfigError at once, naming the run and the holder, when another process has it.
    """
    file = open(folder / NAMES[deed], "a+", encoding="utf-8")  # noqa: SIM115 - closed by the caller
    try:
        # Not flock: its locks are inherited, and children that outlive a killed learner would keep the run.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            logger.warning("%s cannot be locked: %s; start nothing else that %s this run", folder, error, deed)
            return file
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise ConfigError(
            f"xpid = {folder.name!r}: {holder or 'another process'} {deed} this run; stop it or choose another xpid"
        ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file
