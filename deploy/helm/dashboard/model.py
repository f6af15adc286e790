"""Rows of panels in, Grafana's JSON out.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from dashboard.grafana import Panel, Query, Row
from dashboard.variables import DATASOURCE

SCHEMA_VERSION = 41
GRID_WIDTH = 24

Model = dict[str, Any]


def dashboard(
    *, title: str, uid: str, variables: Sequence[Model], matchers: str, starts: str, rows: Sequence[Row]
) -> Model:
    """The JSON model. matchers: the label matchers for "%s" in queries. starts: when learners started, in ms."""
    return {
        "uid": uid,
        "title": title,
        "tags": [uid],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "annotations": {"list": [_start_marks(starts.replace("%s", matchers))]},
        "templating": {"list": [*variables]},
        "panels": [*_placed(rows, matchers)],
    }


def panel_id(title: str) -> int:
    """The same as long as the title is: links to a panel outlive changes of the others."""
    return zlib.crc32(title.encode()) & 0x7FFFFFFF


def _start_marks(expr: str) -> Model:
    """A vertical line wherever a learner's process started: the values of `expr` are the times."""
    return {
        "name": "Learner started",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "purple",
        "expr": expr,
        "useValueForTime": True,
        "titleFormat": "learner started",
        "textFormat": "{{namespace}}/{{job}} {{pod}}",
        "step": "60s",
    }


def _placed(rows: Sequence[Row], matchers: str) -> Iterator[Model]:
    """Headings and panels, row below row. A folded row holds its panels itself."""
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
        panels, height = _laid_out(row, y + 1, matchers)
        yield heading if row.is_open else heading | {"panels": panels}
        if row.is_open:
            yield from panels
        y += 1 + (height if row.is_open else 0)


def _laid_out(row: Row, top: int, matchers: str) -> tuple[list[Model], int]:
    """The panels from left to right, line below line, and the height of all."""
    panels, x, y = [], 0, top
    for panel in row.panels:
        if x + panel.width > GRID_WIDTH:
            x, y = 0, y + row.height
        place = {"x": x, "y": y, "w": panel.width, "h": row.height}
        panels.append(_panel(panel, matchers) | {"gridPos": place})
        x += panel.width
    return panels, y + row.height - top


def _panel(panel: Panel, matchers: str) -> Model:
    return {
        "id": panel_id(panel.title),
        "type": panel.kind,
        "title": panel.title,
        "description": panel.good,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _column_units(panel)},
        "options": _options(panel),
        "transformations": _one_table(panel) if panel.kind == "table" else [],
        "targets": [
            {
                "refId": reference,
                "datasource": DATASOURCE,
                "expr": query.expr.replace("%s", matchers),
                "legendFormat": _legend(panel, query),
                "instant": panel.kind != "timeseries",
                "range": panel.kind == "timeseries",
                "format": "table" if panel.kind == "table" else "time_series",
            }
            for reference, query in zip(_references(panel), panel.queries, strict=True)
        ],
    }


def _legend(panel: Panel, query: Query) -> str:
    """Runs that are looked at side by side are told apart by it; a table has columns for that."""
    return query.legend if panel.kind == "table" else f"{{{{job}}}} {query.legend}"


def _references(panel: Panel) -> list[str]:
    return [chr(ord("A") + index) for index in range(len(panel.queries))]


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
        options = {str(value): {"text": text, "color": colour} for value, (text, colour) in panel.texts.items()}
        defaults |= {"mappings": [{"type": "value", "options": options}]}
    return defaults


def _column_units(panel: Panel) -> list[Model]:
    return [
        {"matcher": {"id": "byName", "options": query.legend}, "properties": [{"id": "unit", "value": query.unit}]}
        for query in panel.queries
        if query.unit
    ]


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
            "sortBy": [{"displayName": panel.queries[0].legend, "desc": True}],
            "footer": {"enablePagination": True},
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _one_table(panel: Panel) -> list[Model]:
    """All queries side by side, each column under its legend."""
    names = {
        f"Value #{reference}" if len(panel.queries) > 1 else "Value": query.legend
        for reference, query in zip(_references(panel), panel.queries, strict=True)
    }
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
    ]
