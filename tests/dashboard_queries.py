"""What the dashboard asks Prometheus, with its variables filled in."""

from collections.abc import Mapping
from string import Template
from typing import Any, NamedTuple


class PanelQuery(NamedTuple):
    panel: str
    """The panel's title."""
    expr: str
    """PromQL that Prometheus takes as it is."""


def queries(dashboard: Mapping[str, Any], variables: Mapping[str, str]) -> list[PanelQuery]:
    """All queries of the JSON model, panel by panel, in their order.

    variables: the value of every variable in the queries by name, those of Grafana itself too, for example
    {"namespace": "local", "job": "local", "env_server_price": "0.05", "learner_price": "1", "__rate_interval": "15s"}.
    KeyError names the one that is missing; others are ignored.
    """
    return [
        PanelQuery(panel["title"], Template(target["expr"]).substitute(variables))
        for outer in dashboard["panels"]
        for panel in (outer, *outer.get("panels", []))
        for target in panel.get("targets", [])
    ]
