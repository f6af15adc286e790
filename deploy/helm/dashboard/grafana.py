"""The form of a Grafana dashboard: rows of panels in, the JSON model out.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SCHEMA_VERSION = 41
GRID_WIDTH, PANEL_HEIGHT = 24, 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

Model = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel."""

    expr: str
    """PromQL; "%s" stands for the label matchers of the release."""
    legend: str
    """Name of the curve; "{{label}}" is replaced by the label's value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Curves over time, or their newest values as numbers. The title names it, in links too: see panel_id."""

    title: str
    good: str
    """What good looks like: the panel's description."""
    unit: str
    """A unit of Grafana: short, percentunit, s, Bps, ..."""
    queries: Sequence[Query]
    kind: Literal["timeseries", "stat"] = "timeseries"
    width: int = 8
    """Of the grid's 24 columns."""
    ceiling: float | None = None
    """Top of the axis; None follows the data."""
    floor: float | None = 0
    """Bottom of the axis, as ceiling."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question and the panels that answer it, from left to right."""

    title: str
    panels: Sequence[Panel]


def dashboard(*, title: str, uid: str, variables: Sequence[Model], matchers: str, rows: Sequence[Row]) -> Model:
    """The JSON model. matchers: the label matchers for "%s" in queries."""
    return {
        "uid": uid,
        "title": title,
        "tags": [uid],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [*variables]},
        "panels": [*_placed(rows, matchers)],
    }


def datasource_variable() -> Model:
    """Which Prometheus is asked."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def label_variable(name: str, label: str, series: str) -> Model:
    """Chosen from the values of the label `name` in a series."""
    query = f"label_values({series}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "variable"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
    }


def panel_id(title: str) -> int:
    """The same as long as the title is: links to a panel outlive changes of the others."""
    return zlib.crc32(title.encode()) & 0x7FFFFFFF


def _placed(rows: Sequence[Row], matchers: str) -> Iterator[Model]:
    """Headings and panels, row below row."""
    y = 0
    for row in rows:
        yield {
            "id": panel_id(f"row {row.title}"),
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1},
            "panels": [],
        }
        x, y = 0, y + 1
        for panel in row.panels:
            if x + panel.width > GRID_WIDTH:
                x, y = 0, y + PANEL_HEIGHT
            place = {"x": x, "y": y, "w": panel.width, "h": PANEL_HEIGHT}
            yield _panel(panel, matchers) | {"gridPos": place}
            x += panel.width
        y += PANEL_HEIGHT


def _panel(panel: Panel, matchers: str) -> Model:
    axis = {"min": panel.floor, "max": panel.ceiling}
    defaults = {"unit": panel.unit} | {end: value for end, value in axis.items() if value is not None}
    return {
        "id": panel_id(panel.title),
        "type": panel.kind,
        "title": panel.title,
        "description": panel.good,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel.kind),
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": query.expr.replace("%s", matchers),
                "legendFormat": query.legend,
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _options(kind: Literal["timeseries", "stat"]) -> Model:
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area"}
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
