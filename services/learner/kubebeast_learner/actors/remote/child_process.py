"""Runs the env-server of a learner on the same machine: it must not outlive its parent, and gives way to updates.

    python -m kubebeast_learner.actors.remote.child_process MODULE [arguments]

The parent holds the other end of standard input. The end of input means that the parent is gone, however it died, and
is answered by SIGTERM to this process, so that the module ends as if it had been asked to.
"""

import os
import runpy
import signal
import sys
import threading
import time

from kubebeast_learner.machine import priority

GRACE_S = 10.0


def _follow_parent() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    priority.give_way(priority.ENVIRONMENTS)
    threading.Thread(target=_follow_parent, name="follow-parent", daemon=True).start()
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
