"""Checkpoint files, read without executing code from them; proven damage is separate from other failures.

A checkpoint is an uncompressed zip archive, as torch.save writes it: `data.pkl`, which describes plain values and
tensors, and a member for each tensor's memory. Each member has a CRC-32, and the archive ends with a list of them.
"""

import io
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch

from kubebeast_common.atomic_file import write_all
from kubebeast_learner.run import weights_file
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files
from kubebeast_runs.weights import SUFFIX

FORMAT = 1
REQUIRED_KEYS = frozenset({"format", "step", "env_spec", "config", "learner"})
_MEMBER = b"PK\x03\x04"
"""The first bytes of a zip archive: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7."""
_BLOCK = 1 << 20
_MAX_DEPTH = 64
_VALUES_PER_BYTE = 10
"""Bound of the values of a state: each takes a byte or more, and several places may share a few of them."""


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read or does not fit; the message names the file and the reason."""


class MissingCheckpointError(CheckpointError):
    """A checkpoint that is not there, or no longer."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint with provably lost content, such as a wrong checksum or a missing end."""


def load_path(path: Path) -> dict[str, Any]:
    """Reads one checkpoint of this machine, as `load` does.

    For a weights file (.safetensors) the state has only the values for playing: step, env_spec, settings, statistics of
    the environments and the model's weights.
    """
    if path.suffix != SUFFIX:
        return load(LocalStorage(path.parent), path.name)
    try:
        return weights_file.read(path)
    except Exception as error:  # files of other origin raise a dozen types
        raise _unreadable(str(path), error) from error


def load(storage: Files, name: str) -> dict[str, Any]:
    """Reads one checkpoint onto the CPU without executing code from it.

    Raises:
        DamagedCheckpointError: If the damage is proven.
        MissingCheckpointError: If there is no such file.
        CheckpointError: If the file cannot be read for another reason, which may not exist elsewhere or later:
            another format, missing permissions, too little memory.
    """
    place = storage.place(name)
    try:
        with _WatchedFile(storage.open(name)) as raw, io.BufferedReader(raw) as file:
            state = _load(file, raw, place)
    except DamagedCheckpointError:
        raise
    except FileNotFoundError as error:
        raise MissingCheckpointError(f"checkpoint {place} is not there, or no longer") from error
    except Exception as error:  # files of other origin raise a dozen types
        raise _unreadable(place, error) from error
    if not isinstance(state, dict) or REQUIRED_KEYS - state.keys():
        raise CheckpointError(f"checkpoint {place} is not a KubeBeast checkpoint")
    if state["format"] != FORMAT:
        raise CheckpointError(f"checkpoint {place} has format {state['format']!r}, this version reads {FORMAT}")
    return state


def write_state(state: dict[str, Any], file: io.FileIO) -> None:
    """Writes the content of a checkpoint. Raises OSError; other threads go on meanwhile."""
    target = _Target(file)
    try:
        torch.save(state, target)  # type: ignore[arg-type] # its stub asks for IO[bytes]; write is enough
    except Exception:
        if target.failure is not None:
            raise target.failure from None
        raise


class _Target:
    """A file that remembers a failed write, as torch.save hides the reason."""

    def __init__(self, file: io.FileIO) -> None:
        self.failure: OSError | None = None
        self._file = file

    def write(self, content: bytes | memoryview) -> int:
        try:
            write_all(self._file, content)
        except OSError as error:
            self.failure = error
            raise
        return len(content)

    def flush(self) -> None:
        """Does nothing, as the file has no buffer."""


def _unreadable(place: str, error: Exception) -> CheckpointError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return CheckpointError(f"checkpoint {place} cannot be read: {reason}")


def _load(file: BinaryIO, raw: "_WatchedFile", place: str) -> Any:
    """Reads the state from `file`, a reader of `raw`.

    Raises DamagedCheckpointError, ValueError if torch did not write the archive, and OSError if a read failed.
    """
    try:
        sizes = _checked_sizes(file, place)
        file.seek(0)
        _require_backed(torch.load(file, map_location="meta", weights_only=True), sizes)
        file.seek(0)
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception:
        if raw.failure is not None:
            raise raw.failure from None
        raise


class _WatchedFile(io.RawIOBase):
    """A file that remembers a failed read: zipfile takes one for the end of an archive."""

    def __init__(self, file: io.RawIOBase | io.BufferedIOBase) -> None:
        self.failure: OSError | None = None
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except OSError as error:
            self.failure = error
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def close(self) -> None:
        self._file.close()
        super().close()


def _checked_sizes(file: BinaryIO, place: str) -> dict[int, int]:
    """Returns the bytes of each member by its offset in the file, after comparing all checksums.

    torch.load does not compare them.
    """
    if not zipfile.is_zipfile(file):
        if proof := _proof_of_damage(file):
            raise DamagedCheckpointError(f"checkpoint {place} is damaged: {proof}")
        raise ValueError("it is no zip archive")
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _require_stored(members, file.seek(0, 2))
            damaged = archive.testzip()
            _require_own_byte_order(archive)
            sizes = {_begin_of(member, file): member.file_size for member in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error) as error:
        raise DamagedCheckpointError(f"checkpoint {place} is damaged: {error}") from error
    if damaged is not None:
        raise DamagedCheckpointError(f"checkpoint {place} is damaged: the checksum of {damaged} is wrong")
    return sizes


def _proof_of_damage(file: BinaryIO) -> str:
    """Returns the evidence that a file without an archive was a checkpoint; "" if it may be of another kind."""
    file.seek(0)
    head = file.read(len(_MEMBER))
    if head == _MEMBER:
        return "its end is missing"
    if not head:
        return "it is empty"
    file.seek(0)
    return "" if any(map(any, iter(lambda: file.read(_BLOCK), b""))) else "it holds nothing but zeros"


def _require_stored(members: Sequence[zipfile.ZipInfo], num_bytes: int) -> None:
    """Raises ValueError for an archive that would be larger in memory than it is on disk."""
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{member.filename} is compressed, which nothing in a checkpoint is")
    if sum(member.file_size for member in members) > num_bytes:
        raise ValueError("its members are larger than the file")


def _begin_of(member: zipfile.ZipInfo, file: BinaryIO) -> int:
    """Returns the offset of a member's content, which follows its header, name and extra field (4.3.7)."""
    file.seek(member.header_offset + 26)
    name_size, extra_size = struct.unpack("<2H", file.read(4))
    return member.header_offset + 30 + int(name_size) + int(extra_size)


def _require_own_byte_order(archive: zipfile.ZipFile) -> None:
    """Raises ValueError for another byte order: torch would swap bytes in memory before the tensors are checked."""
    for name in archive.namelist():
        if name.endswith("/byteorder") and archive.read(name).decode(errors="replace") != sys.byteorder:
            raise ValueError("it is of a machine with another byte order")


def _require_backed(state: object, sizes: Mapping[int, int]) -> None:
    """Raises ValueError if a tensor's memory differs in size from its data in the file: torch would read beyond it.

    `state` is loaded without memory, on the meta device. `sizes` is the result of _checked_sizes.
    """
    for tensor in _tensors(state, _VALUES_PER_BYTE * sum(sizes.values())):
        if tensor.layout != torch.strided:
            raise ValueError(f"it holds a tensor of the layout {tensor.layout}")
        storage = tensor.untyped_storage()
        held = sizes.get(getattr(storage, "_checkpoint_offset", -1), 0)
        if held != storage.nbytes():
            raise ValueError(f"a tensor of {storage.nbytes()} bytes has {held} of them in the file")


def _tensors(state: object, max_values: int) -> Iterator[torch.Tensor]:
    """Yields all tensors in `state`.

    Raises ValueError for a structure that readers could not walk through, because it is deep, contains itself, or
    contains a part of it so often that a small file holds more than `max_values`.
    """
    pending = [(state, 0)]
    num_values = 0
    while pending:
        value, depth = pending.pop()
        num_values += 1
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
        if num_values > max_values:
            raise ValueError("it holds more values than the file has room for")
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, Mapping):
            pending += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, (list, tuple, set)):
            pending += [(each, depth + 1) for each in value]
