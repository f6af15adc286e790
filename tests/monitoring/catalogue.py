"""The observable data, from the code: the metrics of learner and env-server, and the dashboard's queries."""

import json

from harness.processes.env_server import ROOT
from tests.dashboard_queries import PanelQuery, queries
from tests.metric_names import exported_metrics

DASHBOARD = ROOT / "deploy" / "helm" / "kubebeast" / "dashboards" / "kubebeast.json"
# Values of Grafana's variables that the queries use.
VARIABLES = {
    "cluster": ".*",
    "namespace": "local",
    "job": "local",
    "kubebeast_run": ".*",
    "env_server_price": "0.05",
    "learner_price": "1",
    "__rate_interval": "20s",
}


def is_elsewhere(text: str) -> bool:
    """Returns True if a metric or a query needs a part that the site's learner lacks, such as a broker."""
    lacking = ("broker_", "task_steps_", "curriculum", "league", "loss_part")
    return any(f"kubebeast_{name}" in text for name in lacking)


def metric_names() -> set[str]:
    """Returns the names of the metrics that learner and env-server export."""
    return {name for name in exported_metrics() if not is_elsewhere(name) and not name.startswith("kubebeast_eval_")}


def panel_queries(title: str = "") -> list[PanelQuery]:
    """Returns the queries of the dashboard's panel with that title, or of all panels."""
    model = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = [query for query in queries(model, VARIABLES) if title in ("", query.panel)]
    assert found, f"the dashboard has no panel {title!r}"
    return found
