"""Tables on a terminal, in one style; a narrow one goes without the columns that matter least."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

Cells = Mapping[str, Text]
"""Of one line, by the title of their column; what is left out is empty."""
TEXTS = frozenset({"name", "env-server", "environment", "status", "phase", "last exit", "node"})
"""Titles of columns that hold texts; the others hold numbers, which end below each other."""
GAP = 2


def draw_table(
    titles: Sequence[str], dispensable: Iterable[str], lines: Sequence[Cells], width: int, *, fold: bool
) -> Table:
    """dispensable: columns to go without, in this order, where all are wider than `width`. fold: what is too wide still
    goes on in the next line, instead of being cut off.
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
    """Of standard output. file_width: its columns where that is no terminal."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=file_width)
