"""The chart works as a dependency of another one, also several times."""

from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import Manifests, Object, container, environment, render
from tests.chart.umbrella import NAME, render_umbrella, umbrella

EVERYTHING: dict[str, Any] = {
    "envserverDefaults": {
        "podDisruptionBudget": {"enabled": True},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    },
    "learner": {"podDisruptionBudget": {"enabled": True}, "externalService": {"enabled": True}},
    "evaluator": {"enabled": True, "image": {"repository": "evaluator"}},
    "networkPolicy": {"enabled": True},
    "monitoring": {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboard")},
}
TWO: dict[str, Any] = {
    "red": EVERYTHING | {"nameOverride": "red"},
    "blue": EVERYTHING | {"nameOverride": "blue"},
}


def selectors(item: Object) -> list[Object]:
    """Returns all selectors of an object for pods or Services, and those of its pods."""
    found: list[Object] = []

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for child in node:
                walk(child)
        elif isinstance(node, dict):
            found.extend(node[key] for key in ("matchLabels",) if key in node)
            for child in node.values():
                walk(child)

    walk(item)
    if item["kind"] == "Service":
        found.append(item["spec"]["selector"])
    return found


def color_of(name: str) -> str:
    return next(color for color in ("red", "blue") if f"{NAME}-{color}-" in f"{name}-")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Manifests:
    folder = umbrella(tmp_path_factory.mktemp("two") / "chart", {"red": {}, "blue": {}})
    return render_umbrella(folder, TWO)


def test_twice_in_one_release_nothing_should_select_pods_or_services_of_the_other(two: Manifests) -> None:
    labelled = {name.partition("/")[2]: pod["metadata"]["labels"] for name, pod in two.pod_templates().items()}
    labelled |= {item["metadata"]["name"]: item["metadata"]["labels"] for item in two.of_kind("Service")}
    num_selectors = 0
    for item in two:
        for selector in selectors(item):
            chosen = {color_of(name) for name, labels in labelled.items() if selector.items() <= labels.items()}
            assert chosen <= {color_of(item["metadata"]["name"])}, (item["kind"], item["metadata"]["name"], selector)
            num_selectors += 1
    assert num_selectors > 30


def test_twice_in_one_release_env_servers_should_dial_their_own_learner_and_name_its_run(two: Manifests) -> None:
    for color in ("red", "blue"):
        variables = environment(two.get("Deployment", f"{NAME}-{color}-envserver")["spec"]["template"])
        assert variables["KUBEBEAST_ADDRESS"] == f"{NAME}-{color}-learner.training.svc:4431"
        assert variables["KUBEBEAST_RUN"] == f"{NAME}-{color}"


def test_twice_in_one_release_each_should_be_a_job_of_its_own(two: Manifests) -> None:
    for color in ("red", "blue"):
        rules = str(two.get("PrometheusRule", f"{NAME}-{color}")["spec"])
        assert f'job=\\"{NAME}-{color}\\"' in rules.replace('\\\\"', '\\"') or f'job="{NAME}-{color}"' in rules
        service = two.get("Service", f"{NAME}-{color}-learner")["metadata"]["labels"]
        label = two.get("ServiceMonitor", f"{NAME}-{color}-learner")["spec"]["jobLabel"]
        assert service[label] == f"{NAME}-{color}"


def test_an_alias_should_be_enough_to_tell_two_apart(tmp_path: Path) -> None:
    manifests = render_umbrella(umbrella(tmp_path / "chart", {"red": {}, "Blue_2": {}}), {})
    names = [(item["kind"], item["metadata"]["name"]) for item in manifests]

    assert len(set(names)) == len(names)
    assert ("StatefulSet", f"{NAME}-red-learner") in names and ("StatefulSet", f"{NAME}-blue-2-learner") in names


def test_one_dependency_without_an_alias_should_be_called_as_the_release(tmp_path: Path) -> None:
    manifests = render_umbrella(umbrella(tmp_path / "chart", {"kubebeast": {}}), {})

    assert manifests.get("StatefulSet", f"{NAME}-learner")


@pytest.mark.parametrize("key", ["enabled", "install", "create", "deployed"])
def test_a_condition_and_tags_should_be_accepted(tmp_path: Path, key: str) -> None:
    more = {"condition": f"red.{key}", "tags": ["games"]}
    folder = umbrella(tmp_path / "chart", {"red": more})

    on = {"red": {key: True, "nameOverride": "red"}, "tags": {"games": True}, "global": {"team": "games"}}
    assert render_umbrella(folder, on | {"global": {"imageRegistry": "localhost"}}).has("StatefulSet")
    assert not list(render_umbrella(folder, {"red": {key: False}}))


def test_pull_secrets_of_the_parent_should_reach_all_pods(tmp_path: Path) -> None:
    shared = {"imageRegistry": "localhost", "imagePullSecrets": ["shared", {"name": "own"}]}
    manifests = render({"global": shared, "imagePullSecrets": [{"name": "own"}]})

    for pod in manifests.pod_templates().values():
        assert pod["spec"]["imagePullSecrets"] == [{"name": "shared"}, {"name": "own"}]
        assert container(pod)["image"].startswith("localhost/")


@pytest.mark.parametrize("names", [{"nameOverride": "red"}, {"fullnameOverride": "red"}])
def test_a_release_of_an_older_chart_should_keep_what_its_workloads_select_by(names: dict[str, str]) -> None:
    """If Helm can query the cluster, the chart detects this by itself: tests/e2e/test_upgrade.py."""
    manifests = render(EVERYTHING | names | {"instanceOverride": "demo"})
    fullname = manifests.get("StatefulSet")["metadata"]["name"].removesuffix("-learner")
    claim = manifests.get("StatefulSet")["spec"]["volumeClaimTemplates"][0]

    assert "kubebeast/name" not in claim["metadata"]["labels"]
    for item in (*manifests.of_kind("Deployment"), *manifests.of_kind("StatefulSet")):
        selector = item["spec"]["selector"]["matchLabels"]
        assert selector["app.kubernetes.io/instance"] == "demo" and "kubebeast/name" not in selector
        assert selector.items() <= item["spec"]["template"]["metadata"]["labels"].items()
    for item in (*manifests.of_kind("Service"), *manifests.of_kind("NetworkPolicy"), *manifests.of_kind("PodMonitor")):
        for selector in selectors(item):
            assert selector["kubebeast/name"] == fullname


def test_an_ordinary_release_should_select_as_it_always_did() -> None:
    manifests = render()
    expected = {"app.kubernetes.io/name": "kubebeast", "app.kubernetes.io/instance": "demo"}

    learner = manifests.get("StatefulSet")["spec"]["selector"]["matchLabels"]
    group = manifests.get("Deployment")["spec"]["selector"]["matchLabels"]
    assert learner == expected | {"app.kubernetes.io/component": "learner"}
    assert group == expected | {"app.kubernetes.io/component": "envserver", "kubebeast/group": "envserver"}
    assert manifests.get("Service", "demo-learner")["spec"]["selector"] == learner
