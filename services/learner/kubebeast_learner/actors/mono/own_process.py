"""Setup of a process that runs environments, so that their effects stay in it."""

import atexit
import multiprocessing
import os
import signal
import sys
from pathlib import Path

from kubebeast_common import log
from kubebeast_common.process.family import has_started, kill_own_family
from kubebeast_common.process.leaving import leave_with_parent
from kubebeast_common.process.output import outlive_full_volume
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_envserver.faults.hang_watch import say_where_when_asked
from kubebeast_learner.config import RunConfig

LOG_NAME = "actors.log"
"""File in the folder of the run for the output of the processes of environments."""
PARENT_GRACE_S = 5.0
"""Seconds that a process may take to end after the end of the learner."""


def begin(folder: Path, run: RunConfig) -> None:
    """Sets up the process. folder: folder of the run, for LOG_NAME. run: level and format of the log."""
    for number in (signal.SIGINT, signal.SIGHUP):  # from a terminal: for the learner, which then stops the others
        signal.signal(number, signal.SIG_IGN)
    has_started()
    atexit.register(kill_own_family)
    _redirect_output(folder / LOG_NAME)
    replace_what_cannot_be_shown()
    outlive_full_volume()
    multiprocessing.current_process().daemon = False  # else no vector of environments could have processes of its own
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        leave_with_parent(parent.pid, PARENT_GRACE_S, last=kill_own_family)
    say_where_when_asked()
    log.configure(run.log_level, run.log_format)


def _redirect_output(path: Path) -> None:
    """Redirects standard output and error, as the terminal is the learner's. Without a file they are discarded."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o644)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
