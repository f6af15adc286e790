"""Results as a printed table and as a JSON file for comparisons."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RESULTS = Path(__file__).parent / "results"
MAX_WIDTH = 160
"""Width of a table that is written to a file, in characters."""


def print_table(title: str, rows: Sequence["DataclassInstance"]) -> None:
    """Prints a line per row and a column per field; underscores in field names become spaces."""
    if not rows:
        return
    table = Table(title=title, title_justify="left")
    for field in dataclasses.fields(rows[0]):
        table.add_column(field.name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(_cell(getattr(row, field.name)) for field in dataclasses.fields(row)))
    console = Console()
    if not console.is_terminal:
        console.width = MAX_WIDTH
    console.print(table)


def read_json(benchmark: str, settings: "DataclassInstance") -> dict[str, Any] | None:
    """Returns the results of this day and machine that `write_json` has written with the same settings, if any."""
    path = path_of(benchmark)
    document = json.loads(path.read_text()) if path.exists() else {}
    has_same_settings = document.get("settings") == json.loads(json.dumps(dataclasses.asdict(settings), default=_plain))
    results: dict[str, Any] | None = document["results"] if has_same_settings else None
    return results


def write_json(benchmark: str, settings: "DataclassInstance", results: dict[str, Any]) -> Path:
    """Writes results/<benchmark>-<hardware>-<date>.json and returns its path; a result of the same day is replaced."""
    RESULTS.mkdir(exist_ok=True)
    path = path_of(benchmark)
    document = {
        "benchmark": benchmark,
        "machine": machine.describe(),
        "settings": dataclasses.asdict(settings),
        "results": results,
    }
    path.write_text(json.dumps(document, indent=2, default=_plain) + "\n")
    return path


def path_of(benchmark: str) -> Path:
    """Returns the file of a benchmark's results of this day on this machine."""
    return RESULTS / f"{benchmark}-{machine.slug()}-{machine.describe()['date']}.json"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "" if value is None else str(value)


def _plain(value: object) -> object:
    """Converts dataclasses to objects, paths to their names, and other values that JSON does not support to text."""
    if isinstance(value, Path):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
