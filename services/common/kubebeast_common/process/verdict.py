"""The end of a process beneath whose Python there are threads of C++."""

import atexit
import os
import sys
from collections.abc import Callable


def end_with(verdict: Callable[[], int | None]) -> None:
    """Leaves out the finalization of the interpreter once `verdict` has an exit status, which is asked for last of all
    hooks where this is called before others register theirs.

    In the finalization Python before 3.14 unwinds a thread that asks for the GIL: where C++ has called it, as a thread
    of gRPC's or of an environment's, that aborts the process
    (https://docs.python.org/3/c-api/init.html#cautions-regarding-runtime-finalization).
    """
    atexit.register(_end, verdict)  # what is registered first runs last


def _end(verdict: Callable[[], int | None]) -> None:
    status = verdict()
    if status is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
