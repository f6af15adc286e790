"""Standard output is for results: what environments print there goes elsewhere."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def output_to_stderr() -> Iterator[None]:
    """What Python and C code write to standard output goes to standard error."""
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(descriptor, 1)
        os.close(descriptor)
