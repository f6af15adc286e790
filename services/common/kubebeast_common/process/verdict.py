"""The end of a Python process that runs C++ threads."""

import atexit
import os
import sys
from collections.abc import Callable


def end_with(verdict: Callable[[], int | None]) -> None:
    """Skips the finalization of the interpreter if `verdict` returns an exit status. It is called at exit, after all
    hooks that are registered later.

    During finalization, Python before 3.14 unwinds a thread that requests the GIL. If C++ code called into Python, as
    in threads of gRPC or of environments, that aborts the process
    (https://docs.python.org/3/c-api/init.html#cautions-regarding-runtime-finalization).
    """
    atexit.register(_end, verdict)  # hooks run in reverse order of registration


def _end(verdict: Callable[[], int | None]) -> None:
    status = verdict()
    if status is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
