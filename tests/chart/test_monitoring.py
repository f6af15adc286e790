"""Monitors, rules and the dashboard as objects of the chart. What they say: test_monitoring_rules and _dashboard."""

import json

import pytest
import yaml

from tests.chart.chart import container, render, render_error
from tests.chart.prometheus import DASHBOARD, RULES, alerts

ALL_ON = {"monitoring": {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule")}}


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


def test_the_dashboard_should_be_where_and_as_the_sidecar_looks_for_it() -> None:
    where = {"enabled": True, "namespace": "grafana", "annotations": {"grafana_folder": "RL"}}
    config_map = render({"monitoring": {"dashboard": where}}).get("ConfigMap", "demo-dashboard")

    assert config_map["metadata"]["namespace"] == "grafana"
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["annotations"]["grafana_folder"] == "RL"
    assert json.loads(config_map["data"]["kubebeast.json"]) == json.loads(DASHBOARD.read_text(encoding="utf-8"))
