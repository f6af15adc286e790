"""Standard output and error that do not raise errors if their volume is full."""

import contextlib
import io
import sys
from typing import TYPE_CHECKING, TextIO

from kubebeast_common.volume import is_full

if TYPE_CHECKING:
    from typing_extensions import Buffer  # of collections.abc from Python 3.12 on


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
