"""Main program of a run: it gets cores of its own and ends with the sweep, however that ends.

    python -m kubebeast_sweep.processes.launched PARENT CORES PROGRAM ARGUMENT...

The system sends it SIGTERM at the end of its parent (prctl(2), PR_SET_PDEATHSIG), upon which a training saves a
checkpoint. This and cores need Linux; elsewhere the run goes on after a sweep that was killed.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, cores, *words = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(parent):  # it has ended before the call
            return
        os.sched_setaffinity(0, map(int, cores.split(",")))
    os.execv(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
