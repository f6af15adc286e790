"""The files of a run in a bucket, as any process reads them."""

import tempfile
from collections.abc import Callable, Sequence
from io import BufferedRandom
from pathlib import Path

from kubebeast_runs.bucket.manifest import Manifest
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import read_manifest
from kubebeast_runs.parts import TRAINING, Part, evaluators_among
from kubebeast_runs.storage.storage import StoredFile

_MAX_TRIES = 5
"""Pieces of the manifest that was read may be replaced meanwhile, but stay for a while."""


def evaluators_of(bucket: Bucket, xpid: str) -> list[str]:
    """Returns the names of a run's evaluators, "" for the one without a name. Raises OSError."""
    stems = (name.removesuffix(".json") for name in bucket.names(xpid) if name.endswith(".json"))
    return evaluators_among(stems)


class RunFiles:
    """The files of one part of a run, which has a manifest of its own. Implements Files."""

    def __init__(self, bucket: Bucket, xpid: str, part: Part = TRAINING) -> None:
        self._bucket, self._xpid, self._folder = bucket, xpid, f"{xpid}/{part.name}"

    def place(self, name: str) -> str:
        return self._bucket.place(f"{self._xpid}/{name}".rstrip("/"))

    def files(self) -> Sequence[StoredFile]:
        return [
            StoredFile(name, file.num_bytes, file.saved_at_ns, "+".join(piece.key for piece in file.pieces))
            for name, file in self.manifest().files.items()
        ]

    def open(self, name: str) -> BufferedRandom:
        """See Files. Downloads the whole file before it returns."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        try:
            self._download(name, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def fetch(self, folder: Path, is_wanted: Callable[[str], bool]) -> None:
        """Downloads the wanted files into a folder of this machine. Raises OSError."""
        for name in filter(is_wanted, self.manifest().files):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "w+b") as file:
                self._download(name, file)

    def manifest(self) -> Manifest:
        """Returns the present manifest; an empty one if there is none. Raises OSError."""
        found = read_manifest(self._bucket, f"{self._folder}.json")
        return Manifest() if found is None else found[0]

    def _download(self, name: str, file: BufferedRandom) -> None:
        for num_left in reversed(range(_MAX_TRIES)):
            found = self.manifest().files.get(name)
            if found is None:
                raise FileNotFoundError(f"{self.place(name)}: there is no such file")
            try:
                for piece in found.pieces:
                    self._bucket.download(f"{self._folder}/{piece.key}", file)
            except FileNotFoundError:
                if num_left == 0:
                    raise
                file.seek(0)
                file.truncate()
                continue
            if file.tell() != found.num_bytes:
                raise OSError(f"{self.place(name)} has {file.tell()} bytes and not {found.num_bytes}, as it should")
            return
