"""Priorities of threads if there are fewer cores than runnable threads: updates, then environments, then inference.

If an update waits for a core, the queue fills with rollouts that age; if inference waits, its next batch has more rows.
So no core is idle as long as there is work, and this order minimizes the work.
"""

import contextlib
import os
import sys

ENVIRONMENTS = 3
INFERENCE = 8
"""Steps of a nice value: each is a factor of 1.25 between the shares of a contested core,
https://man7.org/linux/man-pages/man7/sched.7.html. Computation on a GPU has no reason to yield."""


def give_way(steps: int) -> None:
    """Lowers the priority of the calling thread and of the threads and processes that it starts from now on.

    Raising it again requires privileges. No effect outside Linux, as priorities there apply to whole processes, or if a
    sandbox forbids it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(PermissionError):
            os.nice(steps)
