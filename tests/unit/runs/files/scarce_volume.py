"""A volume with little room, simulated in os.write."""

import errno
import os
from pathlib import Path

import pytest


class ScarceVolume:
    """Accepts `free_bytes` for files below a folder; afterwards every write is an error."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free_bytes: float = float("inf")
        self.error = errno.ENOSPC
        self._folder = folder
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, content: bytes) -> int:
        """Writes the part of `content` that fits, as os.write does."""
        if not Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(self._folder):
            return self._write(descriptor, content)
        if self.free_bytes <= 0:
            raise OSError(self.error, os.strerror(self.error))
        written = self._write(descriptor, content[: int(min(self.free_bytes, len(content)))])
        self.free_bytes -= written
        return written
