"""Prometheus queries of the dashboard with their variables filled in."""

from collections.abc import Mapping
from string import Template
from typing import Any, NamedTuple


class PanelQuery(NamedTuple):
    panel: str
    """Title of the panel."""
    expr: str
    """PromQL that Prometheus accepts unchanged."""


def queries(dashboard: Mapping[str, Any], variables: Mapping[str, str]) -> list[PanelQuery]:
    """Returns all queries of the JSON model, panel by panel, in their order.

    variables: the value of every variable in the queries by name, including those of Grafana itself, for example
    {"namespace": "local", "job": "local", "kubebeast_run": ".*", "env_server_price": "0.05", "learner_price": "1",
    "__rate_interval": "15s"}. KeyError names a missing one; further ones are ignored.
    """
    return [
        PanelQuery(panel["title"], Template(target["expr"]).substitute(variables))
        for outer in dashboard["panels"]
        for panel in (outer, *outer.get("panels", []))
        for target in panel.get("targets", [])
    ]
