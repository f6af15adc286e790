"""The rules, the dashboard, the exported metrics, and promtool to check them."""

import json
import re
import shutil
import subprocess
from typing import Any

import yaml

from tests.chart.chart import CHART
from tests.metric_names import exported_metrics

ROOT = CHART.parents[2]
RULES = CHART / "rules" / "kubebeast.yaml"
LOCAL_RULES = ROOT / "deploy" / "monitoring" / "rules.yaml"
DASHBOARD = CHART / "dashboards" / "kubebeast.json"
METRIC = re.compile(r"\b(?:kubebeast|process)_(?!(?:group|run)\b)\w+")


def promtool(*arguments: str) -> str:
    """Runs promtool and returns its output; fails with it if promtool finds a fault."""
    program = shutil.which("promtool")
    assert program is not None, "these tests need promtool on PATH; it is in Debian's package prometheus"
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def rules() -> list[dict[str, Any]]:
    """Returns the chart's rules: recorded series and alerts."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard() -> dict[str, Any]:
    model = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert isinstance(model, dict)
    return model


def panels() -> list[dict[str, Any]]:
    """Returns the panels of the dashboard, also of its folded rows, without the headings of rows."""
    everything = [panel for outer in dashboard()["panels"] for panel in (outer, *outer.get("panels", []))]
    return [panel for panel in everything if panel["type"] != "row"]


def known_metrics() -> set[str]:
    """Returns the names of exported metrics and of recorded series."""
    return exported_metrics() | {rule["record"] for rule in rules() if "record" in rule}
