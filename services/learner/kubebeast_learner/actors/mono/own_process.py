"""How a process begins that runs environments: what these do to it stays in it."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

from kubebeast_common import log
from kubebeast_envserver.faults.hang_watch import say_where_when_asked
from kubebeast_learner.config import RunConfig

LOG_NAME = "actors.log"
"""File in the folder of the run that takes what the processes of environments print."""


def begin(folder: Path, run: RunConfig) -> None:
    """folder: of the run. run: what it says of the log, for LOG_NAME."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the learner, which then stops the others
    _redirect_output(folder / LOG_NAME)
    multiprocessing.current_process().daemon = False  # else no vector of environments could have processes of its own
    say_where_when_asked()
    log.configure(run.log_level, run.log_format)


def _redirect_output(path: Path) -> None:
    """Standard output and error belong to the learner's live table."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
