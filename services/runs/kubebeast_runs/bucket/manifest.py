"""The manifest of a run: the pieces of each of its files, and the lease of the process that writes them.

One object, which only its holder replaces, by conditional writes: readers see all files of a moment or of another.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

FORMAT = 1
MAX_FILES, MAX_PIECES = 100_000, 1_000_000
"""Bounds of a manifest from elsewhere."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, which never changes."""

    key: str
    """Its object, below the folder of the run."""
    num_bytes: int


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file as its pieces one after the other."""

    pieces: tuple[Piece, ...]
    saved_at_ns: int
    """Time of the last change, in nanoseconds since 1970."""

    @property
    def num_bytes(self) -> int:
        return sum(piece.num_bytes for piece in self.pieces)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The files of a run at one moment."""

    fence: int = 0
    """Number of the lease, which every new holder increments (fencing token). It is a part of the keys of its pieces,
    so holders never replace the pieces of each other.
    """
    owner: str = ""
    """Random name of the process that holds the lease; empty if it was given back."""
    holder: str = ""
    """The same for people: process and machine."""
    beat: int = 0
    """Increments with every write, so a manifest that does not change for LEASE_S has lost its holder."""
    files: Mapping[str, ManifestFile] = field(default_factory=dict)

    def with_files(self, changed: Mapping[str, ManifestFile | None]) -> Self:
        """Returns a manifest with other files; None deletes one."""
        merged = {**self.files, **changed}
        return replace(self, files={name: file for name, file in merged.items() if file is not None})

    @property
    def keys(self) -> set[str]:
        """Keys of all pieces."""
        return {piece.key for file in self.files.values() for piece in file.pieces}

    def encode(self) -> bytes:
        files = {
            name: {"saved_at_ns": file.saved_at_ns, "pieces": [[piece.key, piece.num_bytes] for piece in file.pieces]}
            for name, file in self.files.items()
        }
        lease = {"fence": self.fence, "owner": self.owner, "holder": self.holder, "beat": self.beat}
        return json.dumps({"format": FORMAT, **lease, "files": files}, indent=1).encode()

    @classmethod
    def decode(cls, content: bytes) -> "Manifest":
        """Reads the result of `encode`. Raises ValueError for anything else: names that leave the folder, too."""
        try:
            plain = json.loads(content)
            if plain["format"] != FORMAT:
                raise ValueError(f"its format is {plain['format']!r}, this version reads {FORMAT}")
            files = {_name(name): _file(file) for name, file in plain["files"].items()}
            if len(files) > MAX_FILES or sum(len(file.pieces) for file in files.values()) > MAX_PIECES:
                raise ValueError("it has too many files")
            return cls(
                fence=_count(plain["fence"]),
                owner=str(plain["owner"]),
                holder=str(plain["holder"]),
                beat=_count(plain["beat"]),
                files=files,
            )
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise ValueError(f"it is no manifest: {type(error).__name__}: {error}") from error


def _file(plain: Mapping[str, Any]) -> ManifestFile:
    pieces = tuple(Piece(_name(key), _count(size)) for key, size in plain["pieces"])
    return ManifestFile(pieces, _count(plain["saved_at_ns"]))


def _name(name: object) -> str:
    """Checks a relative path: readers write files of these names."""
    if not isinstance(name, str) or not name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r:.100} is no name of a file")
    if "\\" in name or "\0" in name:
        raise ValueError(f"{name!r:.100} is no name of a file")
    return name


def _count(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r:.50} is no count")
    return number
