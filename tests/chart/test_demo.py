"""`demo.enabled` runs Catch on a machine with two cores, and a dashboard without an operator."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import Object, container, environment, notes, render, render_error, scenario
from tests.chart.prometheus import ROOT, promtool

DEMO: dict[str, Any] = {"demo": {"enabled": True}}


def files() -> dict[str, str]:
    """Returns the configuration files of Prometheus and Grafana."""
    data: dict[str, str] = render(DEMO).get("ConfigMap", "demo-grafana")["data"]
    return data


def grafana() -> Object:
    pod: Object = render(DEMO).pod_templates()["Deployment/demo-grafana"]
    return pod


@pytest.mark.parametrize("name", ["StatefulSet/demo-learner", "Deployment/demo-envserver"])
def test_learner_and_env_servers_should_be_those_of_the_smallest_scenario(name: str) -> None:
    """Only the length differs: a minute is too short to look at."""
    config = {"learner": {"config": {"total_steps": 1_000_000}}}
    demo, minimal = render(DEMO), render(scenario("minimal"), config)

    assert demo.pod_templates()[name] == minimal.pod_templates()[name]


def test_settings_of_the_learner_should_count_more_than_those_of_the_demo() -> None:
    settings = render(DEMO, {"learner": {"config": {"total_steps": 5, "seed": 3}}}).get("ConfigMap", "demo-learner")

    assert {"total_steps": 5, "seed": 3}.items() <= yaml.safe_load(settings["data"]["learner.yaml"]).items()


def test_the_scenario_should_be_the_one_flag_of_the_quickstart() -> None:
    assert scenario("demo") == DEMO


def test_it_should_ask_for_less_than_a_core() -> None:
    manifests = render(DEMO)
    workloads = manifests.of_kind("Deployment") + manifests.of_kind("StatefulSet")
    millicores = sum(
        item["spec"]["replicas"] * int(part["resources"]["requests"]["cpu"].removesuffix("m"))
        for item in workloads
        for part in item["spec"]["template"]["spec"]["containers"]
    )

    assert 0 < millicores < 1000


def test_nothing_of_it_should_be_there_unless_it_is_wanted() -> None:
    names = {item["metadata"]["name"] for item in render()} | {
        item["metadata"]["name"] for item in render({"demo": {"enabled": True, "grafana": {"enabled": False}}})
    }

    assert {"demo-grafana", "demo-envservers"}.isdisjoint(names)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"envservers": {"mine": {"env": "CartPole-v1"}}}, "envservers contains groups of your own"),
        ({"learner": {"enabled": False, "address": "a:1"}}, "learner.enabled is false"),
        ({"learner": {"gpu": {"count": 1}}}, "learner.gpu.count reserves a GPU"),
    ],
)
def test_values_that_say_otherwise_should_be_refused(values: dict[str, Any], problem: str) -> None:
    assert problem in render_error(DEMO | values)


def test_a_change_of_the_group_should_reach_its_pods() -> None:
    pod = render({"demo": {"enabled": True, "envserver": {"numStreams": 2}}}).pod_templates()[
        "Deployment/demo-envserver"
    ]

    assert environment(pod)["KUBEBEAST_NUM_STREAMS"] == "2"


def test_prometheus_should_take_its_files(tmp_path: Path) -> None:
    for name in ("prometheus.yaml", "rules.yaml"):
        (tmp_path / name).write_text(files()[name], encoding="utf-8")

    assert "SUCCESS" in promtool("check", "config", str(tmp_path / "prometheus.yaml"))


def test_prometheus_should_find_learner_and_env_servers_by_services_of_the_release() -> None:
    learner, envservers = yaml.safe_load(files()["prometheus.yaml"])["scrape_configs"]
    manifests = render(DEMO)
    (address,) = learner["static_configs"][0]["targets"]
    names, ipv6 = envservers["dns_sd_configs"]
    headless = manifests.get("Service", names["names"][0])["spec"]
    pod = manifests.pod_templates()["Deployment/demo-envserver"]

    name, _, port = address.partition(":")
    assert int(port) in [item["port"] for item in manifests.get("Service", name)["spec"]["ports"]]
    assert (names["type"], ipv6) == ("A", {**names, "type": "AAAA"})
    assert headless["clusterIP"] == "None" and "ipFamilyPolicy" not in headless
    assert headless["selector"].items() <= pod["metadata"]["labels"].items()
    assert names["port"] == container(pod)["ports"][0]["containerPort"]


def test_labels_should_be_those_that_the_rules_select_by() -> None:
    for job in yaml.safe_load(files()["prometheus.yaml"])["scrape_configs"]:
        given = {item["target_label"]: item["replacement"] for item in job["relabel_configs"] if "replacement" in item}
        assert given["job"] == "demo"
        assert given["namespace"] == "training"


def test_grafana_should_show_the_dashboard_of_this_release() -> None:
    model = json.loads(files()["kubebeast.json"])
    source = yaml.safe_load(files()["datasources.yaml"])["datasources"][0]
    mounts = {mount.get("subPath"): mount["mountPath"] for mount in container(grafana(), "grafana")["volumeMounts"]}
    variables = {item["name"]: item["value"] for item in container(grafana(), "grafana")["env"]}

    assert model["title"] == "KubeBeast training/demo"
    assert variables["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == mounts["kubebeast.json"]
    assert yaml.safe_load(files()["dashboards.yaml"])["providers"][0]["options"]["path"] == "/etc/kubebeast"
    (flag,) = [word for word in container(grafana(), "prometheus")["args"] if "listen-address" in word]
    assert source["url"] == f"http://{flag.partition('=')[2]}"
    assert set(mounts) >= {"datasources.yaml", "dashboards.yaml", "kubebeast.json"}


def test_images_should_be_those_of_compose() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]

    for name in ("prometheus", "grafana"):
        assert container(grafana(), name)["image"] == f"docker.io/{services[name]['image']}"


def test_a_paused_demo_should_have_no_pods() -> None:
    workloads = render(DEMO | {"paused": True}).of_kind("Deployment")

    assert [item["spec"]["replicas"] for item in workloads] == [0, 0]


def test_the_notes_should_lead_to_the_dashboard() -> None:
    text = notes(DEMO)

    assert "kubectl -n training port-forward service/demo-grafana 3000:3000" in text
    assert "http://localhost:3000" in text
    assert "grafana" not in notes()
