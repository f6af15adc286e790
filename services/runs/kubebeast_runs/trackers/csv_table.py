"""The tracker that writes logs.csv and fields.csv, in the layout of TorchBeast's FileWriter."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubebeast_runs.files.table_file import TableFile, Value


class CsvTracker:
    """One row per tick, after a line "# name,name,..."; fields.csv has a row of names per change of the columns."""

    name = "logs.csv"

    def __init__(self, folder: Path) -> None:
        """Continues the table in `folder` after its last row. Raises OSError if it cannot be read."""
        self._table = TableFile(folder / self.name, folder / "fields.csv")

    def begin(self, meta: Mapping[str, Any]) -> None: ...

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._table.append({"step": step, **values})

    def artifact(self, step: int, path: Path) -> None: ...

    def end(self, *, successful: bool) -> None:
        self._table.close()
