"""Which rows the dashboard has, from top to bottom, and what it can be narrowed to."""

import json

from dashboard import fleet, training
from dashboard.grafana import dashboard, datasource_variable, label_variable

# From the question that matters most down to the one that is asked last.
ROWS = (
    training.LEARNING,
    training.SPEED,
    fleet.BOTTLENECK,
    fleet.FLEET,
    training.DATA,
    training.SAFETY,
)


def dashboard_text() -> str:
    """The dashboard as text. A release is chosen by namespace and job, which learner and env-servers share."""
    variables = [
        datasource_variable(),
        label_variable("namespace", "Namespace", "kubebeast_streams"),
        label_variable("job", "Release", 'kubebeast_streams{namespace="$namespace"}'),
    ]
    matchers = 'namespace="$namespace", job="$job"'
    built = dashboard(title="KubeBeast", uid="kubebeast", variables=variables, matchers=matchers, rows=ROWS)
    return json.dumps(built, indent=2, ensure_ascii=False) + "\n"
