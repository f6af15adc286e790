"""The files that `docker compose up` mounts for Prometheus and Grafana exist, and Prometheus accepts its own."""

import json
import subprocess
from typing import Any

import yaml

from harness.processes.env_server import ROOT
from tests.monitoring.catalogue import DASHBOARD

MONITORING = ROOT / "deploy" / "monitoring"


def load(*path: str) -> Any:
    return yaml.safe_load(ROOT.joinpath(*path).read_text(encoding="utf-8"))


def mounts(service: str) -> dict[str, str]:
    """Returns the files and folders of the repository that compose.yaml mounts in a service, by their paths there."""
    volumes = (volume.split(":") for volume in load("compose.yaml")["services"][service]["volumes"])
    return {parts[1]: parts[0] for parts in volumes if parts[0].startswith("./")}


def test_prometheus_takes_its_configuration_and_its_rules() -> None:
    check = subprocess.run(
        ["promtool", "check", "config", str(MONITORING / "prometheus.yaml")],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert check.returncode == 0, check.stdout + check.stderr
    assert "rules found" in check.stdout


def test_everything_that_compose_mounts_is_in_the_repository() -> None:
    for service in ("prometheus", "grafana"):
        assert mounts(service)
        assert [source for source in mounts(service).values() if not (ROOT / source).exists()] == []


def test_grafana_finds_its_dashboard_and_its_data_source() -> None:
    services = load("compose.yaml")["services"]
    (provider,) = load("deploy", "monitoring", "grafana", "dashboards", "kubebeast.yaml")["providers"]
    (source,) = load("deploy", "monitoring", "grafana", "datasources", "prometheus.yaml")["datasources"]
    folder = mounts("grafana")[provider["options"]["path"]]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]

    assert (ROOT / folder / DASHBOARD.name).samefile(DASHBOARD)
    assert home == f"{provider['options']['path']}/{DASHBOARD.name}"
    assert source["type"] == "prometheus" and source["isDefault"] is True
    assert source["url"] == "http://prometheus:9090"
    assert json.loads(DASHBOARD.read_text())["templating"]["list"][0]["query"] == source["type"]


def test_compose_publishes_nothing_beyond_the_machine_and_no_port_twice() -> None:
    services = load("compose.yaml")["services"].values()
    ports = [port for service in services for port in service.get("ports", [])]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)
