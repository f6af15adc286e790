"""Tables that a process appends to, in the layout of TorchBeast's FileWriter; log_table reads them."""

import csv
import os
import time
from collections.abc import Mapping
from pathlib import Path

Value = float | int | str | tuple[float, ...] | None


class TableFile:
    """A CSV file in which a line "# name,name,..." names the columns from there on. For one writer and one thread.

    An existing one is continued at the tick after its last row; a row that a crash tore is cut off.
    """

    def __init__(self, path: Path, fields_path: Path | None = None) -> None:
        """fields_path: a file that gets a row of all names for every growth. OSError when `path` cannot be written."""
        self._fields_path = fields_path
        self._names, self._tick = _where_it_ended(path)
        self._file = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115 - closed by close

    def append(self, values: Mapping[str, Value]) -> None:
        """Adds one row, with its tick and time; None leaves a field empty. OSError when the disk is full.

        A tuple is written as in TorchBeast: "(1.0, 21.0)".
        """
        row = {"_tick": self._tick, "_time": time.time(), **values}
        new_names = [name for name in row if name not in self._names]
        if new_names:
            self._grow(new_names)
        csv.DictWriter(self._file, self._names).writerow(row)
        self._file.flush()
        self._tick += 1

    def close(self) -> None:
        """OSError when the disk is full. Idempotent."""
        self._file.close()

    def _grow(self, new_names: list[str]) -> None:
        self._names += new_names
        if self._fields_path is not None:
            with open(self._fields_path, "a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(self._names)
        self._file.write(f"# {','.join(self._names)}\n")


def _where_it_ended(path: Path) -> tuple[list[str], int]:
    """The newest names, and the tick after the last row that can be read."""
    if not path.exists():
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
