"""What a reader of the dashboard can choose or fill in.

https://grafana.com/docs/grafana/latest/dashboards/variables/
"""

from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def datasource_variable() -> dict[str, Any]:
    """Which Prometheus is asked."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def label_variable(name: str, label: str, series: str) -> dict[str, Any]:
    """One, several or all values of the label `name` in a series; all is right for a label that nobody sets, too."""
    query = f"label_values({series}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "variable"},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "sort": 1,
    }


def text_variable(name: str, label: str, default: str) -> dict[str, Any]:
    """Typed in by the reader."""
    value = {"text": default, "value": default}
    return {
        "name": name,
        "label": label,
        "type": "textbox",
        "query": default,
        "current": value,
        "options": [value | {"selected": True}],
    }
