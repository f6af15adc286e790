"""Monitors, alerts and the dashboard: what is scraped, and that nothing asks for a metric that nobody exports.

What each alert says about which numbers is tested by promtool, in rules/.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_envserver.metrics import make_registry as make_envserver_registry
from kubebeast_learner.metrics import make_registry as make_learner_registry
from tests.chart.chart import CHART, container, render, render_error

RULES = CHART / "rules" / "kubebeast.yaml"
RULE_TESTS = sorted((Path(__file__).parent / "rules").glob("*_test.yaml"))
DASHBOARD = CHART / "dashboards" / "kubebeast.json"
ALL_ON = {"monitoring": {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule")}}
METRIC = re.compile(r"\b(?:kubebeast|process)_[a-z_]+(?=[{\[\s),]|$)")


def promtool(*arguments: str) -> str:
    """Its output; fails with it when promtool is not content."""
    program = shutil.which("promtool")
    assert program is not None, "these tests need promtool on PATH; it is in Debian's package prometheus"
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def panels() -> list[dict[str, Any]]:
    """Panels of the dashboard without the headings of its rows."""
    return [panel for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def queries_of_the_dashboard() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def exported_metrics() -> set[str]:
    """Names of all samples of learner and env-server, with the "_total" of counters."""
    registries = (make_learner_registry(dict, lambda: None), make_envserver_registry([], lambda: 0))
    families = [family for registry in registries for family in registry.collect()]
    return {family.name + "_total" * (family.type == "counter") for family in families}


def test_monitoring_should_be_off_by_default() -> None:
    manifests = render()

    assert not any(manifests.has(kind) for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule"))
    assert not manifests.has("ConfigMap", "demo-dashboard")


def test_the_service_monitor_should_find_one_port_of_the_learner() -> None:
    manifests = render(ALL_ON)
    spec = manifests.get("ServiceMonitor")["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    (endpoint,) = spec["endpoints"]
    ports = [
        (service["metadata"]["name"], port["name"])
        for service in manifests.of_kind("Service")
        for port in service["spec"]["ports"]
        if wanted <= service["metadata"]["labels"].items() and port["name"] == endpoint["port"]
    ]

    assert ports == [("demo-learner", "http")]
    assert endpoint["path"] == "/metrics"
    assert spec["namespaceSelector"] == {"matchNames": ["training"]}


def test_the_pod_monitor_should_find_the_env_servers_of_all_groups_and_nothing_else() -> None:
    groups = [{"name": "pong", "env": "Pong"}, {"name": "qbert", "env": "Qbert"}]
    manifests = render({**ALL_ON, "envservers": groups})
    spec = manifests.get("PodMonitor")["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    found = {
        name: pod
        for name, pod in manifests.pod_templates().items()
        if spec["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    }

    assert found.keys() == {"Deployment/demo-pong", "Deployment/demo-qbert"}
    for pod in found.values():
        assert endpoint["port"] in [port["name"] for port in container(pod)["ports"]]
        assert pod["metadata"]["labels"].keys() >= {*spec["podTargetLabels"]}


def test_learner_and_env_servers_should_be_one_job() -> None:
    manifests = render(ALL_ON)
    labels = {manifests.get(kind)["spec"]["jobLabel"] for kind in ("ServiceMonitor", "PodMonitor")}

    assert labels == {"app.kubernetes.io/instance"}
    assert manifests.get("Service", "demo-learner")["metadata"]["labels"][labels.pop()] == "demo"


@pytest.mark.parametrize("kind", ["serviceMonitor", "podMonitor"])
def test_a_monitor_should_take_interval_labels_and_relabelings(kind: str) -> None:
    relabeling = {"targetLabel": "cluster", "replacement": "one"}
    values = {"enabled": True, "interval": "30s", "scrapeTimeout": "5s", "labels": {"release": "prom"}}
    monitor = render({"monitoring": {kind: {**values, "relabelings": [relabeling]}}}).get(kind[0].upper() + kind[1:])
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]

    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("30s", "5s")
    assert endpoint["relabelings"] == [relabeling]


def test_the_rules_should_arrive_as_they_are_in_the_file() -> None:
    spec = render(ALL_ON).get("PrometheusRule")["spec"]

    assert spec == yaml.safe_load(RULES.read_text(encoding="utf-8"))
    assert "{{ $labels.namespace }}" in str(spec)


def test_a_disabled_alert_should_be_left_out_and_the_others_stay() -> None:
    off = ["KubeBeastFleetIdle", "KubeBeastCheckpointStale", "KubeBeastCheckpointFailing"]
    values = {"monitoring": {"prometheusRule": {"enabled": True, "disabledAlerts": off}}}
    groups = render(values).get("PrometheusRule")["spec"]["groups"]

    assert {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule} == alerts().keys() - {*off}
    assert all(group["rules"] for group in groups)
    assert "kubebeast_learner_demand_ratio" in [rule.get("record") for group in groups for rule in group["rules"]]


def test_an_unknown_alert_should_be_refused_by_name() -> None:
    values = {"monitoring": {"prometheusRule": {"enabled": True, "disabledAlerts": ["KubeBeastLearnerDwon"]}}}

    assert 'disabledAlerts: there is no alert "KubeBeastLearnerDwon"' in render_error(values)


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_say_what_where_and_what_to_do(alert: str) -> None:
    rule = alerts()[alert]

    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description", "runbook"}
    assert rule["annotations"]["runbook"].startswith("1. ")
    assert "{{ $labels.namespace }}/{{ $labels.job }}" in rule["annotations"]["summary"]
    assert "by (namespace, job" in rule["expr"]


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_should_have_a_test_that_fires_it(alert: str) -> None:
    assert any(f'ALERTS{{alertname="{alert}"' in path.read_text(encoding="utf-8") for path in RULE_TESTS)


def test_promtool_should_find_no_fault_in_the_rules() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", str(RULES))


@pytest.mark.parametrize("path", RULE_TESTS, ids=lambda path: path.stem)
def test_alerts_should_fire_when_they_must_and_only_then(path: Path) -> None:
    promtool("test", "rules", str(path))


def test_rules_and_dashboard_should_ask_for_exported_metrics_only() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    asked = {name for expr in [rule["expr"] for rule in rules()] for name in METRIC.findall(expr)}
    asked |= {name for expr in queries_of_the_dashboard() for name in METRIC.findall(expr)}

    assert len(asked) > 20
    assert asked - exported_metrics() - recorded - {"kubebeast_group"} == set()


def test_every_panel_should_say_what_good_looks_like_in_which_unit() -> None:
    assert panels()
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_should_have_ids_of_their_own_and_not_overlap() -> None:
    everything = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in everything
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_query_of_the_dashboard_should_be_promql_of_one_release(tmp_path: Path) -> None:
    queries = [expr.replace("$__rate_interval", "5m") for expr in queries_of_the_dashboard()]
    recorded = [{"record": f"query:{index}", "expr": expr} for index, expr in enumerate(queries)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": recorded}]}))

    promtool("check", "rules", str(tmp_path / "queries.yaml"))
    for expr in queries:
        assert expr.count('namespace="$namespace", job="$job"') == len(METRIC.findall(expr)) - expr.count(
            "(kubebeast_group)"
        ), expr


def test_the_dashboard_should_be_where_and_as_the_sidecar_looks_for_it() -> None:
    where = {"enabled": True, "namespace": "grafana", "annotations": {"grafana_folder": "RL"}}
    config_map = render({"monitoring": {"dashboard": where}}).get("ConfigMap", "demo-dashboard")

    assert config_map["metadata"]["namespace"] == "grafana"
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["annotations"]["grafana_folder"] == "RL"
    assert json.loads(config_map["data"]["kubebeast.json"]) == json.loads(DASHBOARD.read_text(encoding="utf-8"))
