"""Runs the env-server of a learner on the same machine: it does not outlive its parent, and updates have priority.

    python -P -m kubebeast_learner.actors.remote.child_process MODULE [arguments]

The parent holds the other end of standard input. If the parent or the input ends, this process gets SIGTERM, so that
the module ends as on request.
"""

import os
import runpy
import signal
import sys
from functools import partial

from kubebeast_common.process.family import kill_descendants
from kubebeast_common.process.leaving import leave_with_parent
from kubebeast_learner.machine import priority

GRACE_S = 10.0
STDIN = 0

if __name__ == "__main__":
    priority.give_way(priority.ENVIRONMENTS)
    ask = partial(os.kill, os.getpid(), signal.SIGTERM)
    leave_with_parent(os.getppid(), GRACE_S, ask=ask, last=kill_descendants, pipe=STDIN)
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
