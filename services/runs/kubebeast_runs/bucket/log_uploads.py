"""Uploads of the files that a run writes on this machine: logs, tables and event files."""

from pathlib import Path
from typing import NamedTuple

from kubebeast_common.atomic_file import SUFFIX
from kubebeast_runs.bucket.manifest import Piece
from kubebeast_runs.bucket.storage import BucketStorage

_GROWTH = 2
"""A piece is uploaded again with what follows it if that is at least 1/_GROWTH as large: a file of n bytes has O(log n)
pieces, and each byte is uploaded O(log n) times."""
_LINES = (".csv", ".log")
"""Suffixes of the files that grow by lines. Event files grow, too; all others are replaced as a whole."""
_END_BYTES = 64
"""Bytes at the end of a known part that show that a file was not replaced by a longer one."""


class _Version(NamedTuple):
    inode: int
    num_bytes: int
    changed_at_ns: int


class LogUploads:
    """The files of one folder on their way to a bucket. Not thread-safe."""

    def __init__(self, folder: Path, storage: BucketStorage) -> None:
        """All files that are in the folder now are in the bucket already."""
        self._folder, self._storage = folder, storage
        self._uploaded = self._versions()
        self._ends = {name: self._end(name, self._pieces(name)) for name in self._uploaded}

    def sync(self) -> None:
        """Uploads all changes, which are in the bucket together. Blocks; raises OSError and LeaseLostError."""
        now = self._versions()
        changed: dict[str, tuple[Piece, ...] | None] = {}
        for name, version in now.items():
            if version != self._uploaded.get(name) and (pieces := self._upload(name, version.num_bytes)) is not None:
                changed[name] = pieces
        ends = {name: self._end(name, pieces) for name, pieces in changed.items() if pieces is not None}
        changed |= dict.fromkeys(self._uploaded.keys() - now.keys())
        if changed:
            self._storage.commit(changed)
        self._uploaded = now
        self._ends |= ends

    def _upload(self, name: str, num_bytes: int) -> tuple[Piece, ...] | None:
        """Uploads what is new of a file of `num_bytes`, and returns its pieces; None if there is nothing new."""
        known = self._pieces(name)
        kept = known if self._has_grown(name, known, num_bytes) else ()
        while kept and kept[-1].num_bytes <= _GROWTH * (num_bytes - _size(kept)):
            kept = kept[:-1]
        content = _whole_records(name, self._read(name, _size(kept), num_bytes))
        if not content and kept == known:
            return None
        return (*kept, self._storage.upload(name, content))

    def _has_grown(self, name: str, known: tuple[Piece, ...], num_bytes: int) -> bool:
        grows = Path(name).suffix in _LINES or "tfevents" in name
        return grows and _size(known) <= num_bytes and self._end(name, known) == self._ends.get(name)

    def _pieces(self, name: str) -> tuple[Piece, ...]:
        found = self._storage.manifest().files.get(name)
        return () if found is None else found.pieces

    def _end(self, name: str, pieces: tuple[Piece, ...]) -> bytes:
        """Returns the end of the part of a file that the pieces have."""
        size = _size(pieces)
        return self._read(name, max(0, size - _END_BYTES), size)

    def _read(self, name: str, begin: int, end: int) -> bytes:
        with open(self._folder / name, "rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def _versions(self) -> dict[str, _Version]:
        found = (path for path in self._folder.rglob("*") if not path.name.startswith(".") and path.suffix != SUFFIX)
        versions = {}
        for path in found:
            if path.is_file():
                status = path.stat()
                version = _Version(status.st_ino, status.st_size, status.st_mtime_ns)
                versions[path.relative_to(self._folder).as_posix()] = version
        return versions


def _size(pieces: tuple[Piece, ...]) -> int:
    return sum(piece.num_bytes for piece in pieces)


def _whole_records(name: str, content: bytes) -> bytes:
    """Returns the content up to its last whole line, if the file consists of lines: a failed write is cut off later."""
    return content[: content.rfind(b"\n") + 1] if Path(name).suffix in _LINES else content
