"""Which rows the dashboard has, from top to bottom, and what it can be narrowed to."""

import json

from dashboard import bottleneck, data, fleet, glance, learning, safety, speed
from dashboard.model import Model, dashboard
from dashboard.variables import datasource_variable, label_variable, text_variable

# From the question that matters most down to the one that is asked last.
ROWS = (glance.GLANCE, learning.LEARNING, speed.SPEED, bottleneck.BOTTLENECK, fleet.FLEET, data.DATA, safety.SAFETY)


def dashboard_model() -> Model:
    """The dashboard. Releases are chosen by cluster, namespace and job, which learner and env-servers share."""
    variables = [
        datasource_variable(),
        label_variable("cluster", "Cluster", "kubebeast_streams"),
        label_variable("namespace", "Namespace", 'kubebeast_streams{cluster=~"$cluster"}'),
        label_variable("job", "Release", 'kubebeast_streams{cluster=~"$cluster", namespace=~"$namespace"}'),
        text_variable("env_server_price", "Dollars per env-server hour", "0.05"),
        text_variable("learner_price", "Dollars per learner hour", "1.00"),
    ]
    matchers = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job"'
    starts = "kubebeast_learner_start_time_seconds{%s} * 1000"
    return dashboard(
        title="KubeBeast", uid="kubebeast", variables=variables, matchers=matchers, starts=starts, rows=ROWS
    )


def dashboard_text() -> str:
    """The dashboard as the chart's file has it."""
    return json.dumps(dashboard_model(), indent=2, ensure_ascii=False) + "\n"
