"""The README and the guides describe the chart correctly."""

import re

import pytest

from tests.chart.chart import render
from tests.chart.prometheus import ROOT, alerts

GUIDE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
DEMO = {"demo": {"enabled": True}}


def test_the_readme_should_lead_to_the_dashboard_of_the_release_that_it_installs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (release,) = re.findall(r"helm install (\S+) \S+ --set demo.enabled=true", readme)
    ((service, port),) = re.findall(r"kubectl port-forward service/(\S+) 3000:(\d+)", readme)
    ports = render(DEMO, release=release).get("Service", service)["spec"]["ports"]

    assert [item["port"] for item in ports] == [int(port)]


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_have_its_section_in_the_guide(alert: str) -> None:
    assert f"\n## {alert}\n" in GUIDE
