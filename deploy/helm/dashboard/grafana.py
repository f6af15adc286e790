"""The words of a dashboard: rows of panels, each with its queries. What Grafana makes of them is in `model`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple


class Level(NamedTuple):
    """A colour from `start` on; None is the lowest level."""

    start: float | None
    colour: str


WAITING = (Level(None, "green"), Level(0.25, "orange"), Level(0.5, "red"))
"""Of a share of time that is lost."""
FILLED = (Level(None, "green"), Level(0.8, "orange"), Level(1, "red"))
"""Of a share of what there is."""
NONE_IS_GOOD = (Level(None, "green"), Level(1e-9, "red"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Curves over time, or newest values as numbers or as a table."""

    good: str
    """What good looks like, and what to do otherwise: the panel's description."""
    queries: Mapping[str, str]
    """PromQL by the name of the curve or of the table's column, in which "{{label}}" is replaced by the label's value.
    "%s" stands for the label matchers of the release."""
    unit: str = "short"
    """A unit of Grafana: short, percentunit, s, Bps, ..."""
    column_units: Mapping[str, str] = field(default_factory=dict)
    """Of a table's columns that have another."""
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    """A table has a row for each set of labels, a column for each query, and is sorted by the first."""
    width: int | None = None
    """Of the grid's 24 columns; None: its row's."""
    ceiling: float | None = None
    """Top of the axis; None follows the data."""
    floor: float | None = 0
    """Bottom of the axis, as ceiling."""
    levels: Sequence[Level] = ()
    """Colours of a number, dashed lines among curves."""
    texts: Sequence[tuple[str, str]] = ()
    """A text and a colour in place of each number from 0 on."""
    no_data: str = "no data"
    """Instead of a number where there is none: what is missing, if that is known."""
    names_only: bool = False
    """Of a stat: the legends say it all."""


Stat = partial(Panel, kind="stat")
Panels = Mapping[str, Panel]
"""By title, from left to right. The title names a panel, in links too: see panel_id."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question and the panels that answer it."""

    title: str
    panels: Panels
    width: int = 8
    """Of its panels, in the grid's columns."""
    height: int = 8
    is_open: bool = False
    """Whether its panels are shown, and their queries asked, before the reader unfolds it."""
