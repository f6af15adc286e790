"""Names of objects differ between releases, keep the limits of Kubernetes, and are stable over versions."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.chart import Manifests, render, render_error

LONG = "a-release-name-of-fifty-three-characters-which-helm-"
EVERYTHING: dict[str, Any] = {
    "envserverDefaults": {
        "podDisruptionBudget": {"enabled": True},
        "autoscaling": {"hpa": {"enabled": True}},
    },
    "learner": {"podDisruptionBudget": {"enabled": True}},
    "networkPolicy": {"enabled": True},
    "fleetRole": {"create": True, "subjects": [{"kind": "User", "name": "x"}]},
    "token": {"enabled": True, "value": "x"},
    "tls": {"enabled": True, "mutual": True, "certManager": {"enabled": True, "issuerRef": {"name": "x"}}},
    "monitoring": {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboard")},
}


def names(manifests: Manifests) -> set[tuple[str, str]]:
    return {(item["kind"], item["metadata"]["name"]) for item in manifests}


def run_name(manifests: Manifests) -> str:
    (settings,) = (
        item["data"]["learner.yaml"] for item in manifests.of_kind("ConfigMap") if "learner.yaml" in item["data"]
    )
    return str(yaml.safe_load(settings)["xpid"])


def named_by(how: str, name: str) -> Manifests:
    """Renders a release with everything on, with the long `name` given in one of the three ways."""
    if how == "release":
        return render(EVERYTHING, release=name)
    if how == "nameOverride":
        return render(EVERYTHING | {"nameOverride": name}, release="run")
    return render(EVERYTHING | {"fullnameOverride": name})


@pytest.mark.parametrize("how", ["release", "nameOverride", "fullnameOverride"])
def test_long_names_that_differ_at_the_end_should_share_no_object_and_no_run(how: str) -> None:
    first, second = named_by(how, f"{LONG}1"), named_by(how, f"{LONG}2")

    assert names(first).isdisjoint(names(second))
    assert run_name(first) != run_name(second)


@pytest.mark.parametrize("how", ["release", "nameOverride", "fullnameOverride"])
def test_long_names_should_fit_the_limits_of_kubernetes(how: str) -> None:
    manifests = named_by(how, f"{LONG}1")

    assert max(len(name) for _, name in names(manifests)) <= 63
    # The revision label of a StatefulSet's pods is its name and a hash of ten characters.
    assert len(manifests.get("StatefulSet")["metadata"]["name"]) <= 52
    assert len(names(manifests)) == len(list(manifests))


@pytest.mark.parametrize("name", ["demo", "a" * 40])
def test_a_name_that_fits_should_stay_as_it_is(name: str) -> None:
    manifests = render(release=name)

    assert manifests.has("StatefulSet", f"{name}-learner")
    assert manifests.has("Deployment", f"{name}-envserver")
    assert run_name(manifests) == name


def test_long_names_of_groups_should_stay_apart_within_the_limit() -> None:
    groups = {f"{'b' * 39}{end}": {"env": "x"} for end in "12"}
    deployments = render({"fullnameOverride": "a" * 40, "envservers": groups}).of_kind("Deployment")

    assert len({item["metadata"]["name"] for item in deployments}) == 2
    assert all(len(item["metadata"]["name"]) <= 63 for item in deployments)


@pytest.mark.parametrize("release", ["v1.2", "2nd-try"])
def test_a_name_that_no_service_can_have_should_be_refused(release: str) -> None:
    """Helm takes dots and leading digits; names of Services do not."""
    assert f'"{release}": set fullnameOverride' in render_error({}, release=release)
    assert render({"fullnameOverride": "try"}, release=release).has("Service", "try-learner")


def scalars(node: Any) -> Iterator[Any]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else None
    if children is None:
        yield node
    else:
        for child in children:
            yield from scalars(child)


@pytest.mark.parametrize("name", ["null", "true"])
def test_names_that_yaml_takes_for_something_else_should_stay_names(name: str) -> None:
    values = EVERYTHING | {"envservers": {"a": {"env": "x", "fullnameOverride": name}}}
    manifests = render(values | {"fullnameOverride": name}, namespace="2026")

    assert {type(item["metadata"]["name"]) for item in manifests} == {str}
    assert {item["metadata"]["namespace"] for item in manifests} == {"2026"}
    assert manifests.get("Deployment", name)
    assert 2026 not in [scalar for item in manifests for scalar in scalars(item)]


def test_names_of_the_users_own_objects_may_be_digits() -> None:
    number = "123"
    service = {"enabled": True, "loadBalancerClass": number}
    pod = {"priorityClassName": number, "schedulerName": number, "serviceAccount": {"create": False, "name": number}}
    learner = pod | {"gpu": {"count": 1, "runtimeClassName": number}, "externalService": service}
    values = EVERYTHING | {
        "envserverDefaults": pod | {"runtimeClassName": number},
        "token": {"enabled": True, "existingSecret": number, "key": number},
        "tls": {"enabled": True, "mutual": True, "existingSecret": number, "client": {"existingSecret": number}},
    }
    for persistence in ({"existingClaim": number}, {"storageClassName": number}):
        found = [
            scalar
            for item in render(values | {"learner": learner | {"persistence": persistence}})
            for scalar in scalars(item)
        ]

        assert number in found
        assert int(number) not in found
