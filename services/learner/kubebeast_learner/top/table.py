"""Draws the env-servers, and their streams where these are wanted: in the style of `kubebeast fleet`."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from kubebeast_learner.fleet.table import GAP, PASSING, age_text
from kubebeast_learner.top.rows import Row

COLUMNS: dict[str, JustifyMethod] = {
    "env-server": "left",
    "environment": "left",
    "streams": "right",
    "envs": "right",
    "steps/s": "right",
    "env time": "right",
    "wait": "right",
    "parked": "right",
    "phase": "left",
    "age": "right",
    "node": "left",
    "restarts": "right",
}
DISPENSABLE = ("node", "environment", "streams", "age", "restarts", "parked", "envs")
"""Columns that a narrow terminal goes without, in this order."""
MAX_NAME = 48
"""Characters of a name that are shown."""
MIN_ROWS = 3
"""Shown however low the terminal."""
SLOW_STYLE = "bold red"

Cells = dict[str, Text]


def draw_rows(rows: Sequence[Row], width: int, height: int | None, *, streams: bool) -> Table:
    """At most as many rows as fit, and how many there are more.

    rows: sorted. height: lines for all of it, titles included; None: as needed. streams: a row for each stream, too.
    """
    num_lines = len(rows) + (sum(len(row.streams) for row in rows) if streams else 0)
    num_fitting = num_lines if height is None else max(MIN_ROWS, height - 1)
    num_shown = num_lines if num_lines <= num_fitting else num_fitting - 1
    lines = list(islice(_lines(rows, streams), num_shown))
    if num_shown < num_lines:
        lines.append({"env-server": Text(f"and {num_lines - num_shown:,} more", style="dim")})
    titles = _titles(rows, lines, width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for title in titles:
        table.add_column(title, justify=COLUMNS[title], no_wrap=True)
    for cells in lines:
        table.add_row(*(cells.get(title, "") for title in titles))
    return table


def time_text(seconds: float | None) -> str:
    """Three digits and a unit that suits: 250 µs, 1.25 ms, 12.5 s; "-" where it is not known."""
    if seconds is None:
        return "-"
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _titles(rows: Sequence[Row], lines: Sequence[Cells], width: int) -> list[str]:
    """The columns that say something and fit."""
    titles = list(COLUMNS)
    if len({row.env_id for row in rows if row.env_id}) < 2:
        titles.remove("environment")
    if all(row.restarts is None for row in rows):
        titles = [title for title in titles if title not in ("node", "restarts")]
    widths = {title: max(len(title), *(len(cells.get(title, "")) for cells in lines), 0) for title in COLUMNS}
    for title in DISPENSABLE:
        if title in titles and sum(widths[title] + GAP for title in titles) - GAP > width:
            titles.remove(title)
    return titles


def _lines(rows: Sequence[Row], streams: bool) -> Iterator[Cells]:
    for row in rows:
        yield _cells(row, row.name)
        if streams:
            yield from (_dimmed(_cells(stream, f"  {stream.name}")) for stream in row.streams)


def _cells(row: Row, name: str) -> Cells:
    style = SLOW_STYLE if row.is_slow else ""
    phase_style = "" if row.num_streams or row.phase in PASSING else "red"
    parked = "-" if row.parked_ratio is None else f"{row.parked_ratio:.0%}"
    return {
        "env-server": Text(name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…", style=style),
        "environment": Text(row.env_id[:MAX_NAME]),
        "streams": Text(f"{row.num_streams}" if row.num_streams else "none", style="" if row.num_streams else "yellow"),
        "envs": Text(f"{row.envs:,}"),
        "steps/s": Text("-" if row.steps_per_second is None else f"{row.steps_per_second:,.0f}"),
        "env time": Text(time_text(row.env_s), style=style),
        "wait": Text(time_text(row.action_wait_s)),
        "parked": Text(parked),
        "phase": Text(row.phase[:MAX_NAME], style=phase_style),
        "age": Text(age_text(row.age_s)),
        "node": Text(row.node or "-"),
        "restarts": Text("" if row.restarts is None else f"{row.restarts:,}", style="red" if row.restarts else ""),
    }


def _dimmed(cells: Cells) -> Cells:
    return {title: Text(text.plain, style="dim") for title, text in cells.items()}
