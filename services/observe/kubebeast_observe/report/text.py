"""Content of the report as text for a terminal or a file."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubebeast_observe.report.page import changed, facts, status, tiles
from kubebeast_observe.report.run_folder import RunFolder
from kubebeast_observe.report.settings import compare, shown

STYLES = {"good": "bold green", "bad": "bold red", "open": "bold yellow", "unknown": "dim"}
MAX_MESSAGES = 10
"""Number of newest warnings and errors shown."""


def draw(run: RunFolder) -> RenderableType:
    """Draws the numbers, settings other than the defaults, facts and newest warnings of a run."""
    code, text = status(run)
    title = Text.assemble((run.name, "bold"), "  ", (text, STYLES[code]), "  ", (run.env_id, "dim"))
    parts: list[RenderableType] = [title, Text(), _table(tiles(run))]
    settings = changed(compare(run.record("args"), run.record("defaults"), run.record("recipe")))
    if settings:
        rows = [(s.name, shown(s.value), f"{s.origin}; default {shown(s.default)}") for s in settings]
        parts += [Text(), Text("Configuration", style="bold"), _table(rows)]
    for name, rows_of_facts in facts(run):
        if rows_of_facts:
            parts += [Text(), Text(name, style="bold"), _table(rows_of_facts)]
    messages = list(run.out_log.messages)[-MAX_MESSAGES:]
    if messages:
        counts = f"{run.out_log.num_errors:,} errors, {run.out_log.num_warnings:,} warnings"
        parts += [Text(), Text(counts, style="bold")]
        parts += [Text(f"{message.time} {message.level} {message.lines[0]}") for message in messages]
    return Group(*parts)


def _table(rows: "list[tuple[str, str, str]] | list[list[str]]") -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
