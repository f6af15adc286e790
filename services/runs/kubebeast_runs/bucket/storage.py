"""A run in a bucket as a storage, for the process that holds its lease."""

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from kubebeast_runs.bucket.manifest import Manifest, ManifestFile, Piece
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import Pointer
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.parts import TRAINING, Part

KEEP_S = 120.0
"""Time for which replaced pieces stay, for readers that have begun with an older manifest."""


class BucketStorage(RunFiles):
    """The files of one part of a run, written by this process alone. Implements Storage. Thread-safe.

    A file is uploaded as a piece of its own, and is there as soon as the manifest names it: a process that is killed at
    any moment, or has lost its lease, leaves pieces that nobody reads, and the next holder deletes them. All methods
    that change files raise LeaseLostError.
    """

    def __init__(self, bucket: Bucket, xpid: str, pointer: Pointer, part: Part = TRAINING) -> None:
        super().__init__(bucket, xpid, part)
        self._pointer = pointer
        manifest = pointer.manifest
        self._own = f"{manifest.fence}-{manifest.owner}"
        """Beginning of the last part of its keys, which no other process has."""
        self._numbers = itertools.count()
        self._replaced: list[tuple[float, set[str]]] = []
        """Times and keys of pieces that the manifest has stopped to name."""
        self._lock = threading.Lock()

    def manifest(self) -> Manifest:
        return self._pointer.manifest

    @contextmanager
    def create(self, name: str) -> Iterator[FileIO]:
        with tempfile.NamedTemporaryFile(buffering=0) as temporary:
            with open(temporary.name, "wb", buffering=0) as file:
                yield file
            self.commit({name: (self.upload(name, Path(temporary.name)),)})

    def upload(self, name: str, content: bytes | Path) -> Piece:
        """Uploads a piece of a file. Blocks; raises OSError."""
        self._pointer.confirm()
        key = f"{name}/{self._own}-{next(self._numbers)}"
        self._bucket.write(f"{self._folder}/{key}", content)
        return Piece(key, len(content) if isinstance(content, bytes) else content.stat().st_size)

    def commit(self, files: Mapping[str, tuple[Piece, ...] | None]) -> None:
        """Makes files of uploaded pieces, all at one moment; None deletes a file. Blocks; raises OSError."""
        now = time.time_ns()
        changed = {name: None if pieces is None else ManifestFile(pieces, now) for name, pieces in files.items()}
        before = self._pointer.change(lambda manifest: manifest.with_files(changed))
        with self._lock:
            self._replaced.append((time.monotonic(), before.keys - self.manifest().keys))
        self.delete_replaced(KEEP_S)

    def delete(self, name: str) -> None:
        if name in self.manifest().files:
            self.commit({name: None})

    def delete_unfinished(self, is_own: Callable[[str], bool]) -> None:
        """Does nothing, as `delete_unnamed` has deleted them."""

    def delete_unnamed(self) -> None:
        """Deletes the pieces that the manifest does not name: remains of earlier holders. Raises OSError."""
        named, prefix = self.manifest().keys, f"{self._folder}/"
        found = (key.removeprefix(prefix) for key in self._bucket.keys(self._folder))
        self._delete({key for key in found if key not in named and f"/{self._own}-" not in key})

    def delete_replaced(self, after_s: float = 0.0) -> None:
        """Deletes the pieces that other ones have replaced, those of `after_s` ago or earlier. Raises OSError."""
        with self._lock:
            due = [keys for since, keys in self._replaced if time.monotonic() - since >= after_s]
            del self._replaced[: len(due)]
        self._delete(set().union(*due))

    def _delete(self, keys: set[str]) -> None:
        if keys:
            self._pointer.confirm()
            self._bucket.delete(f"{self._folder}/{key}" for key in sorted(keys))
