"""Who goes first where more threads want to run than there are cores: updates, then environments, then inference.

An update that waits for a core fills the queue with rollouts that get old; inference that waits finds more rows for its
next batch. So no core is idle as long as there is work, and the work is done in the order that makes it least.
"""

import contextlib
import os
import sys

ENVIRONMENTS = 3
INFERENCE = 8
"""Steps of a nice value: a thread gets about a quarter less of a contested core for each,
https://man7.org/linux/man-pages/man7/sched.7.html. What computes on a GPU has no reason to give way.
"""


def give_way(steps: int) -> None:
    """Lowers the priority of the calling thread and of the threads and processes that it starts from now on.

    Nobody without privileges can raise it again. Outside Linux, where a priority is a whole process's, and where a
    sandbox forbids it, nothing changes.
    """
    if sys.platform == "linux":
        with contextlib.suppress(PermissionError):
            os.nice(steps)
