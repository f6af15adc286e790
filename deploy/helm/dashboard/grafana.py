"""The elements of a dashboard: rows of panels, each with its queries. `model` turns them into Grafana's JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple


class Level(NamedTuple):
    """A color for values from `start` on; None is the lowest level."""

    start: float | None
    colour: str


WAITING = (Level(None, "green"), Level(0.25, "orange"), Level(0.5, "red"))
"""For a share of time that is lost."""
FILLED = (Level(None, "green"), Level(0.8, "orange"), Level(1, "red"))
"""For the share of a capacity that is in use."""
NONE_IS_GOOD = (Level(None, "green"), Level(1e-9, "red"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Curves over time, or the newest values as numbers or as a table."""

    good: str
    """The panel's description: good values, and remedies for others."""
    queries: Mapping[str, str]
    """PromQL by the name of the curve or of the table's column. "{{label}}" in a name is replaced by the label's value,
    and "%s" in PromQL by the label matchers of the release."""
    unit: str = "short"
    """A unit of Grafana: short, percentunit, s, Bps, ..."""
    column_units: Mapping[str, str] = field(default_factory=dict)
    """Units of a table's columns that differ from `unit`."""
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    """A table has a row for each set of labels and a column for each query. It is sorted by the first column."""
    width: int | None = None
    """Width in the grid's 24 columns; None is the width of the row's panels."""
    ceiling: float | None = None
    """Top of the axis; None follows the data."""
    floor: float | None = 0
    """Bottom of the axis; None follows the data."""
    levels: Sequence[Level] = ()
    """Colors of a number, or dashed lines in a graph."""
    texts: Sequence[tuple[str, str]] = ()
    """A text and a color that replace each number from 0 on."""
    no_data: str = "no data"
    """Shown if there is no number: the missing source, if it is known."""
    names_only: bool = False
    """For a stat: show only the legends."""


Stat = partial(Panel, kind="stat")
Panels = Mapping[str, Panel]
"""Panels by title, from left to right. The title identifies a panel, also in links: see panel_id."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question and the panels that answer it."""

    title: str
    panels: Panels
    width: int = 8
    """Width of its panels, in the grid's columns."""
    height: int = 8
    is_open: bool = False
    """If False, its panels are hidden, and their queries do not run, until the reader expands the row."""
