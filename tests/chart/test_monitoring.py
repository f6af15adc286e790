"""Monitors, rules and the dashboard are objects of the chart. For their content: test_monitoring_rules and
_dashboard.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import container, render, render_error
from tests.chart.prometheus import DASHBOARD, METRIC, RULES, alerts, promtool

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

    assert labels == {"kubebeast/name"}
    assert manifests.get("Service", "demo-learner")["metadata"]["labels"][labels.pop()] == "demo"


def test_the_service_monitor_should_find_the_learner_whatever_argo_cd_writes_on_its_service() -> None:
    """It replaces app.kubernetes.io/instance of every object, except pods, by the name of its Application."""
    manifests = render(ALL_ON)
    labels = manifests.get("Service", "demo-learner")["metadata"]["labels"] | {"app.kubernetes.io/instance": "argo-app"}
    spec = manifests.get("ServiceMonitor")["spec"]

    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert labels[spec["jobLabel"]] == "demo"


@pytest.mark.parametrize("kind", ["serviceMonitor", "podMonitor"])
def test_a_monitor_should_take_interval_labels_and_relabelings(kind: str) -> None:
    relabeling = {"targetLabel": "cluster", "replacement": "one"}
    dropped = {"action": "drop", "sourceLabels": ["__name__"], "regex": "python_.*"}
    values = {"enabled": True, "interval": "30s", "scrapeTimeout": "5s", "labels": {"release": "prom"}}
    values |= {"relabelings": [relabeling], "metricRelabelings": [dropped]}
    monitor = render({"monitoring": {kind: values}}).get(kind[0].upper() + kind[1:])
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]

    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("30s", "5s")
    assert endpoint["relabelings"] == [relabeling]
    assert endpoint["metricRelabelings"] == [dropped]


def test_the_rules_should_be_those_of_the_file_for_this_release_only(tmp_path: Path) -> None:
    spec = render(ALL_ON).get("PrometheusRule")["spec"]
    release = 'namespace="training",job="demo"'
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))

    promtool("check", "rules", str(tmp_path / "rules.yaml"))
    for group in spec["groups"]:
        for rule in group["rules"]:
            assert rule["expr"].count(f"{{{release}") == len(METRIC.findall(rule["expr"])), rule["expr"]
            rule["expr"] = rule["expr"].replace(f"{{{release},", "{").replace(f"{{{release}}}", "")
    assert spec == yaml.safe_load(RULES.read_text(encoding="utf-8"))
    assert "{{ $labels.namespace }}" in str(spec)


def test_alerts_should_link_to_the_page_that_is_named() -> None:
    page = "https://docs.example.org/kubebeast/alerts.html"
    values = {"monitoring": {"prometheusRule": {"enabled": True, "runbookUrl": page}}}
    groups = render(values).get("PrometheusRule")["spec"]["groups"]
    links = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for group in groups
        for rule in group["rules"]
        if "alert" in rule
    }

    assert links == {name: f"{page}#{name.lower()}" for name in alerts()}
    assert "runbookUrl" in render_error({"monitoring": {"prometheusRule": {"runbookUrl": "docs/alerts.md"}}})


def test_a_disabled_alert_should_be_left_out_and_the_others_stay() -> None:
    off = ["KubeBeastFleetIdle", "KubeBeastCheckpointStale", "KubeBeastCheckpointFailing"]
    values = {"monitoring": {"prometheusRule": {"enabled": True, "disabledAlerts": off}}}
    groups = render(values).get("PrometheusRule")["spec"]["groups"]

    assert {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule} == alerts().keys() - {*off}
    assert all(group["rules"] for group in groups)
    assert "kubebeast_learner_demand_ratio" in [rule.get("record") for group in groups for rule in group["rules"]]


@pytest.mark.parametrize(
    "values", [{"paused": True}, {"learner": {"enabled": False, "address": "learner.example.com:4431"}}]
)
def test_a_release_that_wants_no_learner_should_miss_none(values: dict[str, Any]) -> None:
    groups = render(ALL_ON | values).get("PrometheusRule")["spec"]["groups"]
    left_out = alerts().keys() - {rule.get("alert") for group in groups for rule in group["rules"]}

    assert left_out == {"KubeBeastLearnerDown"}


def test_an_unknown_alert_should_be_refused_by_name() -> None:
    values = {"monitoring": {"prometheusRule": {"enabled": True, "disabledAlerts": ["KubeBeastLearnerDwon"]}}}

    assert 'disabledAlerts: there is no alert "KubeBeastLearnerDwon"' in render_error(values)


def test_the_dashboard_should_be_where_and_as_the_sidecar_looks_for_it() -> None:
    where = {"enabled": True, "namespace": "grafana", "annotations": {"grafana_folder": "RL"}}
    config_map = render({"monitoring": {"dashboard": where}}).get("ConfigMap", "training-demo-dashboard")

    assert config_map["metadata"]["namespace"] == "grafana"
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["annotations"]["grafana_folder"] == "RL"
    assert [*config_map["data"]] == ["kubebeast-training-demo.json"]


def test_dashboards_of_two_namespaces_should_fit_in_a_third() -> None:
    values = {"monitoring": {"dashboard": {"enabled": True, "namespace": "grafana"}}}
    found = [
        item["metadata"]
        for namespace in (f"{'a' * 62}1", f"{'a' * 62}2")
        for item in render(values, namespace=namespace).of_kind("ConfigMap")
        if item["metadata"]["namespace"] == "grafana"
    ]

    assert len({item["name"] for item in found}) == len(found) == 2
    assert max(len(item["name"]) for item in found) <= 63


def test_two_releases_should_not_write_one_dashboard_file_and_each_shows_its_own() -> None:
    values = {"monitoring": {"dashboard": {"enabled": True}}}
    files = [render(values, release=release).get("ConfigMap", f"{release}-dashboard")["data"] for release in ("a", "b")]
    models = [json.loads(text) for data in files for text in data.values()]
    chosen = [
        {item["name"]: item.get("current", {}).get("value") for item in model["templating"]["list"]} for model in models
    ]

    assert not {*files[0]} & {*files[1]}
    assert len({model["uid"] for model in models}) == 2 and all(len(model["uid"]) <= 40 for model in models)
    assert [model["title"] for model in models] == ["KubeBeast training/a", "KubeBeast training/b"]
    assert [(variables["namespace"], variables["job"]) for variables in chosen] == [
        (["training"], [name]) for name in "ab"
    ]


def test_the_dashboard_should_ask_what_that_of_the_file_asks() -> None:
    data = render({"monitoring": {"dashboard": {"enabled": True}}}).get("ConfigMap", "demo-dashboard")["data"]
    (text,) = data.values()

    assert json.loads(text)["panels"] == json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
