"""Tables that a process appends to, in the layout of TorchBeast's FileWriter; log_table reads them."""

import csv
import io
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubebeast_runs.files.append_file import AppendFile

Value = float | int | str | tuple[float, ...] | None


class TableFile:
    """A CSV file in which a line "# name,name,..." names the columns from there on. For one writer and one thread.

    An existing file is continued at the tick after its last row; a torn last row is truncated.
    """

    def __init__(self, path: Path, fields_path: Path | None = None) -> None:
        """Reads the names and the last tick of an existing table.

        `fields_path` is a file that gets a row of all names for every change. Raises OSError if `path` cannot be read.
        """
        self._names, self._tick = _where_it_ended(path)
        self._file = AppendFile(path)
        self._fields = None if fields_path is None else AppendFile(fields_path)
        self._names_in_fields = self._names

    def append(self, values: Mapping[str, Value]) -> None:
        """Appends one row, with its tick and time; None leaves a field empty.

        A tuple is written as in TorchBeast: "(1.0, 21.0)". Raises OSError if the row cannot be written: the table is
        then unchanged, and the next row gets this tick.
        """
        row = {"_tick": self._tick, "_time": time.time(), **values}
        names = [*self._names, *(name for name in row if name not in self._names)]
        if self._fields is not None and names != self._names_in_fields:
            self._fields.append(_line(names))
            self._names_in_fields = names
        is_named = names == self._names and not self._file.is_empty()
        header = b"" if is_named else f"# {','.join(names)}\n".encode()
        self._file.append(header + _line([row.get(name) for name in names]))
        self._names = names
        self._tick += 1

    def close(self) -> None:
        """Closes the files; idempotent. Raises OSError if the volume reports a write error only now."""
        if self._fields is not None:
            self._fields.close()
        self._file.close()


def _line(fields: Sequence[Value]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(fields)
    return text.getvalue().encode()


def _where_it_ended(path: Path) -> tuple[list[str], int]:
    """Returns the newest names and the tick after the last readable row, and truncates a torn row."""
    if not path.is_file():
        return [], 0
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    lines = whole.splitlines()
    header = next((line for line in reversed(lines) if line.startswith(b"# ")), b"")
    ticks = (line.partition(b",")[0] for line in reversed(lines))
    newest = next((int(tick) for tick in ticks if tick.isdigit()), -1)
    return header.removeprefix(b"# ").decode(errors="replace").split(",") if header else [], newest + 1
