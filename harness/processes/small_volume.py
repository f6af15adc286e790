"""A file system of a few megabytes in a separate mount namespace, for the kernel's real behavior on a full disk."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

MIB = 1 << 20
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec cat'
FILLER = "filler"


class SmallVolume:
    """A tmpfs on `folder`, which processes started by `words` see there, and other processes below `inside`.

    A context manager; the volume ends with the last process in it. Needs root or unprivileged user namespaces.
    """

    def __init__(self, folder: Path, num_bytes: int = 8 * MIB) -> None:
        """Prepares the volume; entering mounts it, or raises PermissionError if no namespace can be created.

        Args:
            folder: Existing folder.
            num_bytes: Size of the volume.
        """
        self._folder = folder
        self._num_bytes = num_bytes

    def __enter__(self) -> Self:
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", *user, "--mount", "sh", "-c", _MOUNT, "sh", str(self._num_bytes), str(self._folder)]
        pipe = subprocess.PIPE
        self._holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "mounted\n":
            raise PermissionError(self._holder.communicate()[1].strip())
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holder.communicate()

    @property
    def words(self) -> list[str]:
        """Prefix of a command that runs with the volume, in the working directory of this process."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self._holder.pid}", *user, "--mount", f"--wd={Path.cwd()}", "--"]

    @property
    def inside(self) -> Path:
        """Path of the volume for other processes."""
        return Path(f"/proc/{self._holder.pid}/root") / self._folder.relative_to("/")

    def fill(self) -> None:
        """Writes a file until no byte is free."""
        with open(self.inside / FILLER, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def relieve(self) -> None:
        """Frees the space that `fill` has taken."""
        (self.inside / FILLER).unlink()
