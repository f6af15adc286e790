"""Terminal tables in one style; a narrow terminal omits the least important columns."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

Cells = Mapping[str, Text]
"""Cells of one line by column title; a missing cell is empty."""
TEXTS = frozenset({"name", "env-server", "environment", "status", "phase", "last exit", "node"})
"""Titles of the left-aligned text columns; the others hold numbers, aligned on the right."""
GAP = 2


def draw_table(
    titles: Sequence[str], dispensable: Iterable[str], lines: Sequence[Cells], width: int, *, fold: bool
) -> Table:
    """Draws a table.

    Args:
        dispensable: Columns to omit, in this order, until the table fits into `width`.
        fold: If set, text that is still too wide continues on the next line; else it is cut off.
    """
    titles = list(titles)
    widths = {title: max(len(title), *(len(cells.get(title, "")) for cells in lines), 0) for title in titles}
    for title in dispensable:
        if title in titles and sum(widths[title] + GAP for title in titles) - GAP > width:
            titles.remove(title)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for title in titles:
        justify: JustifyMethod = "left" if title in TEXTS else "right"
        table.add_column(title, justify=justify, overflow="fold" if fold else "ellipsis", no_wrap=not fold)
    for cells in lines:
        table.add_row(*(cells.get(title, "") for title in titles))
    return table


def console(file_width: int) -> Console:
    """Returns a console on standard output. file_width: columns if it is no terminal."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=file_width)
