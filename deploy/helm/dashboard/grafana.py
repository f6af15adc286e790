"""The words of a dashboard: rows of panels, each with its queries. What Grafana makes of them is in `model`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["timeseries", "stat", "table"]


class Level(NamedTuple):
    """A colour from `start` on; None is the lowest level."""

    start: float | None
    colour: str


WAITING = (Level(None, "green"), Level(0.25, "orange"), Level(0.5, "red"))
"""Of a share of time that is lost."""
FILLED = (Level(None, "green"), Level(0.8, "orange"), Level(1, "red"))
"""Of a share of what there is."""
NONE_IS_GOOD = (Level(None, "green"), Level(1e-9, "red"))


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel."""

    expr: str
    """PromQL; "%s" stands for the label matchers of the release."""
    legend: str
    """Name of the curve or of the table's column; "{{label}}" is replaced by the label's value."""
    unit: str = ""
    """Of the table's column; "" is the panel's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Curves over time, or newest values as numbers or as a table. The title names it, in links too: see panel_id."""

    title: str
    good: str
    """What good looks like, and what to do otherwise: the panel's description."""
    unit: str
    """A unit of Grafana: short, percentunit, s, Bps, ..."""
    queries: Sequence[Query]
    kind: Kind = "timeseries"
    """A table has a row for each set of labels, a column for each query, and is sorted by the first."""
    width: int = 8
    """Of the grid's 24 columns."""
    ceiling: float | None = None
    """Top of the axis; None follows the data."""
    floor: float | None = 0
    """Bottom of the axis, as ceiling."""
    levels: Sequence[Level] = ()
    """Colours of a number, dashed lines among curves."""
    texts: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """A text and a colour in place of a number."""
    no_data: str = "no data"
    """Instead of a number where there is none: what is missing, if that is known."""
    names_only: bool = False
    """Of a stat: the legends say it all."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question and the panels that answer it, from left to right."""

    title: str
    panels: Sequence[Panel]
    height: int = 8
    """Of each panel, in the grid's rows."""
    is_open: bool = False
    """Whether its panels are shown, and their queries asked, before the reader unfolds it."""
