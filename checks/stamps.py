"""Stamps of passed groups on this machine: a file for each group and hash of its inputs, outside every clone."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path

MAX_AGE_S = 7 * 24 * 3600.0
"""Age limit of a stamp: indexes, mirrors and a machine's packages change without any input."""
KEPT = 50
"""Number of stamps kept of each group; older ones are deleted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stamp:
    """One pass of a group."""

    time: float
    """Seconds since the epoch."""
    commit: str
    seconds: float
    """Wall time of the group."""


class Stamps:
    """The stamps in a folder.

    Args:
        folder: Created with the first stamp; it may be missing or unreadable.
        now: Clock, in seconds since the epoch.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    def find(self, group: str, digest: str) -> Stamp | None:
        """Returns the pass with these inputs; None if there is none, if it is too old, or if its file is damaged."""
        stamp = _read(self._path(group, digest))
        return stamp if stamp and 0 <= self._now() - stamp.time <= MAX_AGE_S else None

    def newest(self, group: str) -> Stamp | None:
        """Returns the newest pass with any inputs."""
        found = [stamp for path in self._folder.glob(f"{group}/*") if (stamp := _read(path))]
        return max(found, key=lambda stamp: stamp.time, default=None)

    def write(self, group: str, digest: str, *, commit: str, seconds: float) -> None:
        """Writes a stamp atomically: a reader sees the whole file or none.

        Raises:
            OSError: If the folder cannot be written.
        """
        path = self._path(group, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(dataclasses.asdict(Stamp(self._now(), commit, seconds))))
        partial.replace(path)
        for old in sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)

    def _path(self, group: str, digest: str) -> Path:
        return self._folder / group / digest


def _read(path: Path) -> Stamp | None:
    try:
        return Stamp(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
