"""Converts rows of panels to Grafana's JSON.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from dashboard.grafana import Panel, Row

GRID_WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

Model = dict[str, Any]
Matchers = Callable[[str], str]
"""Returns the label matchers of a series, by its name."""


def panel_id(title: str) -> int:
    """Depends only on the title, so links to a panel stay valid if other panels change."""
    return zlib.crc32(title.encode()) & 0x7FFFFFFF


def placed(rows: Sequence[Row], matchers: Matchers) -> Iterator[Model]:
    """Headings and panels, row by row. A collapsed row contains its panels. `matchers` replace "%s" in queries."""
    y = 0
    for row in rows:
        heading: Model = {
            "id": panel_id(f"row {row.title}"),
            "type": "row",
            "title": row.title,
            "collapsed": not row.is_open,
            "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1},
            "panels": [],
        }
        y += 1
        panels = _laid_out(row, y, matchers)
        if row.is_open:
            yield heading
            yield from panels
            y = panels[-1]["gridPos"]["y"] + row.height
        else:
            yield heading | {"panels": panels}


def _laid_out(row: Row, y: int, matchers: Matchers) -> list[Model]:
    """The panels from left to right, line by line. ValueError if the panels of a line do not fill it."""
    panels, x = [], 0
    for title, panel in row.panels.items():
        width = panel.width or row.width
        if x + width > GRID_WIDTH:
            _require_full(row, x, f"before {title!r}")
            x, y = 0, y + row.height
        place = {"x": x, "y": y, "w": width, "h": row.height}
        panels.append(_panel(title, panel, matchers) | {"gridPos": place})
        x += width
    _require_full(row, x, "at the end")
    return panels


def _require_full(row: Row, width: int, place: str) -> None:
    if width != GRID_WIDTH:
        raise ValueError(f"row {row.title!r}: the line {place} has a width of {width}, it must be {GRID_WIDTH}")


def _panel(title: str, panel: Panel, matchers: Matchers) -> Model:
    is_table, over_time = panel.kind == "table", panel.kind == "timeseries"
    return {
        "id": panel_id(title),
        "type": panel.kind,
        "title": title,
        "description": panel.good,
        "datasource": DATASOURCE,
        "fieldConfig": {
            "defaults": _defaults(panel),
            "overrides": [
                {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]}
                for name, unit in panel.column_units.items()
            ],
        },
        "options": _options(panel),
        "transformations": _one_table(panel) if is_table else [],
        "targets": [
            {
                "refId": ascii_uppercase[number],
                "datasource": DATASOURCE,
                "expr": re.sub(r"(\w+)\{%s", lambda found: f"{found[1]}{{{matchers(found[1])}", expr),
                # In a graph, the job identifies the run and the rank the learner; a table has columns for both.
                "legendFormat": legend if is_table else f"{{{{job}}}} {legend} {{{{rank}}}}",
                "instant": not over_time,
                "range": over_time,
                "format": "table" if is_table else "time_series",
            }
            for number, (legend, expr) in enumerate(panel.queries.items())
        ],
    }


def _defaults(panel: Panel) -> Model:
    axis = {"min": panel.floor, "max": panel.ceiling}
    defaults: Model = {"unit": panel.unit, "noValue": panel.no_data} | {
        end: value for end, value in axis.items() if value is not None
    }
    if panel.levels:
        steps = [{"value": level.start, "color": level.colour} for level in panel.levels]
        defaults |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    if panel.levels and panel.kind == "timeseries":
        defaults |= {"custom": {"thresholdsStyle": {"mode": "dashed"}}, "color": {"mode": "palette-classic"}}
    if panel.texts:
        options = {str(value): {"text": text, "color": colour} for value, (text, colour) in enumerate(panel.texts)}
        defaults |= {"mappings": [{"type": "value", "options": options}]}
    return defaults


def _options(panel: Panel) -> Model:
    if panel.kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "graphMode": "none",
            "colorMode": "background" if panel.levels or panel.texts else "value",
            "textMode": "name" if panel.names_only else "auto",
        }
    if panel.kind == "table":
        return {
            "sortBy": [{"displayName": next(iter(panel.queries)), "desc": True}],
            "footer": {"enablePagination": True},
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _one_table(panel: Panel) -> list[Model]:
    """All queries side by side, each in a column with its legend as the title."""
    suffix = " #{}" if len(panel.queries) > 1 else ""
    names = {"Value" + suffix.format(ascii_uppercase[number]): name for number, name in enumerate(panel.queries)}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
    ]
