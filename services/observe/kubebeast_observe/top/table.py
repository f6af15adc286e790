"""Table of the env-servers, and optionally their streams, in the style of `kubebeast fleet`."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.table import Table
from rich.text import Text

from kubebeast_observe.fleet.table import PASSING
from kubebeast_observe.numbers import age_text, number_text, time_text
from kubebeast_observe.table import Cells, draw_table
from kubebeast_observe.top.rows import EnvServer

DISPENSABLE = ("node", "environment", "streams", "age", "restarts", "parked", "envs")
"""Columns that a narrow terminal omits, in this order."""
MAX_NAME = 48
"""Maximum number of characters shown of a name."""
MIN_ROWS = 3
"""Minimum number of rows, for any height of the terminal."""
SLOW_STYLE = "bold red"


def draw_rows(rows: Sequence[EnvServer], width: int, height: int | None, *, streams: bool) -> Table:
    """Draws as many rows as fit, and the number of the others.

    Args:
        rows: Sorted, at least one.
        height: Maximum number of lines, titles included; None: as many as needed.
        streams: If set, each stream has a row, too.
    """
    num_lines = len(rows) + (sum(len(row.streams) for row in rows) if streams else 0)
    num_fitting = num_lines if height is None else max(MIN_ROWS, height - 1)
    num_shown = num_lines if num_lines <= num_fitting else num_fitting - 1
    lines = list(islice(_lines(rows, streams), num_shown))
    if num_shown < num_lines:
        lines.append({"env-server": Text(f"and {num_lines - num_shown:,} more", style="dim")})
    silent = {"node", "restarts"} if all(row.restarts is None for row in rows) else set()
    if len({row.env_id for row in rows if row.env_id}) < 2:
        silent.add("environment")
    columns = [title for title in _cells(rows[0], "") if title not in silent]
    return draw_table(columns, DISPENSABLE, lines, width, fold=False)


def _lines(rows: Sequence[EnvServer], streams: bool) -> Iterator[Cells]:
    for row in rows:
        yield _cells(row, row.name)
        if streams:
            yield from (_dimmed(_cells(stream, f"  {stream.name}")) for stream in row.streams)


def _cells(row: EnvServer, name: str) -> Cells:
    style = SLOW_STYLE if row.is_slow else ""
    phase_style = "" if row.num_streams or row.phase in PASSING else "red"
    return {
        "env-server": Text(name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…", style=style),
        "environment": Text(row.env_id[:MAX_NAME]),
        "streams": Text(f"{row.num_streams}" if row.num_streams else "none", style="" if row.num_streams else "yellow"),
        "envs": Text(f"{row.envs:,}"),
        "steps/s": Text(number_text(row.steps_per_second)),
        "env time": Text(time_text(row.env_s), style=style),
        "wait": Text(time_text(row.action_wait_s)),
        "parked": Text(number_text(row.parked_ratio, ".0%")),
        "phase": Text(row.phase[:MAX_NAME], style=phase_style),
        "age": Text(age_text(row.age_s)),
        "node": Text(row.node or "-"),
        "restarts": Text("" if row.restarts is None else f"{row.restarts:,}", style="red" if row.restarts else ""),
    }


def _dimmed(cells: Cells) -> Cells:
    return {title: Text(text.plain, style="dim") for title, text in cells.items()}
