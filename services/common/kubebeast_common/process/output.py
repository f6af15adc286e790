"""Standard output and error: redirected, as standard output is for results, and without errors on a full volume."""

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from kubebeast_common.volume import is_full

if TYPE_CHECKING:
    from typing_extensions import Buffer  # of collections.abc from Python 3.12 on


@contextlib.contextmanager
def output_to_stderr() -> Iterator[None]:
    """Redirects output of Python and C code from standard output to standard error."""
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


def outlive_full_volume() -> None:
    """Makes this process drop output that does not fit on a full volume, instead of raising in the code that prints,
    e.g. in an environment. The next output starts on a new line.

    Streams that replace the process's own, as in tests and notebooks, are left unchanged.
    """
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _outliving(sys.stdout)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _outliving(sys.stderr)


def _outliving(stream: io.TextIOWrapper) -> TextIO:
    with contextlib.suppress(OSError):
        stream.flush()
    raw = _DroppingFile(stream.fileno())
    file = raw if stream.write_through else io.BufferedWriter(raw)  # as python -u and without
    return io.TextIOWrapper(
        file, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


class _DroppingFile(io.FileIO):
    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._is_torn = False

    def write(self, content: "Buffer", /) -> int:
        view = memoryview(content).cast("B")
        try:
            if self._is_torn:
                super().write(b"\n")
                self._is_torn = False
            return super().write(view) or 0
        except OSError as error:
            if not is_full(error):
                raise
            self._is_torn = True
            return len(view)
