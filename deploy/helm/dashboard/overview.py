"""The rows of the dashboard from top to bottom, and the variables that its reader can select or enter.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
https://grafana.com/docs/grafana/latest/dashboards/variables/
"""

import json

from alerts.recording import RECORDING
from dashboard.bottleneck import BOTTLENECK
from dashboard.data import DATA
from dashboard.fleet import FLEET
from dashboard.glance import GLANCE
from dashboard.grafana import Row
from dashboard.learning import LEARNING
from dashboard.model import DATASOURCE, Model, placed
from dashboard.safety import SAFETY
from dashboard.speed import SPEED
from dashboard.sweep import SWEEP

SCHEMA_VERSION = 41
RELEASE = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job"'
"""Matchers of a release: its learner and its env-servers share all three labels."""
START = "kubebeast_learner_start_time_seconds"
RUN = "kubebeast_run"
"""Label of the learners of a sweep."""
OF_ALL_RUNS = ("kubebeast_broker_", "kubebeast_envserver_", "kubebeast_eval_", *RECORDING)
"""Beginnings of the names of series without this label."""
# From the most important row to the least important one.
ROWS = (
    Row("State of the run", GLANCE, width=4, height=4, is_open=True),
    Row("Learning", LEARNING, is_open=True),
    Row("Speed and cost", SPEED),
    Row("Runs of a sweep", SWEEP),
    Row("Bottleneck", BOTTLENECK),
    Row("Fleet health", FLEET),
    Row("Data quality", DATA),
    Row("Checkpoints and resources", SAFETY, width=6),
)


def matchers_of(series: str) -> str:
    """The label matchers of a series: those of the release, and those of learners also select runs of a sweep."""
    is_of_learner = series.startswith("kubebeast_") and not series.startswith(OF_ALL_RUNS)
    return f'{RELEASE}, {RUN}=~"${RUN}"' if is_of_learner else RELEASE


def dashboard_text() -> str:
    """The JSON model, i.e. the content of the chart's file."""
    model = {
        "uid": "kubebeast",
        "title": "KubeBeast",
        "tags": ["kubebeast"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "annotations": {"list": [_start_marks()]},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
                _label("cluster", "Cluster", "kubebeast_streams"),
                _label("namespace", "Namespace", 'kubebeast_streams{cluster=~"$cluster"}'),
                _label("job", "Release", 'kubebeast_streams{cluster=~"$cluster", namespace=~"$namespace"}'),
                _label(RUN, "Run of a sweep", f"kubebeast_streams{{{RELEASE}}}"),
                _text("env_server_price", "Dollars per env-server hour", "0.05"),
                _text("learner_price", "Dollars per learner hour", "1.00"),
            ]
        },
        "panels": [*placed(ROWS, matchers_of)],
    }
    return json.dumps(model, indent=2, ensure_ascii=False) + "\n"


def _start_marks() -> Model:
    """A vertical line at each start of a learner's process: the values of `expr` are the times."""
    return {
        "name": "Learner started",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "purple",
        "expr": f"{START}{{{matchers_of(START)}}} * 1000",
        "useValueForTime": True,
        "titleFormat": "learner started",
        "textFormat": "{{namespace}}/{{job}} {{pod}}",
        "step": "60s",
    }


def _label(name: str, label: str, series: str) -> Model:
    """One, several or all values of the label `name` in a series; all also matches series without this label."""
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


def _text(name: str, label: str, default: str) -> Model:
    """A text field for the reader."""
    value = {"text": default, "value": default}
    options = [value | {"selected": True}]
    return {"name": name, "label": label, "type": "textbox", "query": default, "current": value, "options": options}
