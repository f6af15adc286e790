"""If Kubernetes takes only one of several keys, the user's key replaces the default."""

from typing import Any

import pytest

from tests.chart.chart import Object, container, render

HTTP = {"path": "/healthz", "port": "http"}
EXEC = {"command": ["true"]}


def deployment(entry: dict[str, Any], defaults: dict[str, Any] | None = None) -> Object:
    return render({"envservers": {"a": {"env": "x", **entry}}, "envserverDefaults": defaults or {}}).get("Deployment")


def budget(bound: dict[str, Any], defaults: dict[str, Any] | None = None) -> Object:
    """Returns the bound in the disruption budget of a group."""
    entry = {"env": "x", "podDisruptionBudget": {"enabled": True, **bound}}
    values = {"envservers": {"a": entry}, "envserverDefaults": {"podDisruptionBudget": defaults or {}}}
    spec = render(values).get("PodDisruptionBudget")["spec"]
    return {key: value for key, value in spec.items() if key in ("minAvailable", "maxUnavailable")}


@pytest.mark.parametrize(("kube_version", "expected"), [("1.20.0", "policy/v1beta1"), ("1.21.0", "policy/v1")])
def test_a_disruption_budget_should_fit_the_cluster(kube_version: str, expected: str) -> None:
    values = {"learner": {"podDisruptionBudget": {"enabled": True}}}
    budget = render(values, kube_version=kube_version).get("PodDisruptionBudget")

    assert budget["apiVersion"] == expected
    assert budget["spec"]["minAvailable"] == 1
    assert {"enabled", "maxUnavailable"}.isdisjoint(budget["spec"])
    assert not render().has("PodDisruptionBudget")


def test_a_disruption_budget_should_have_one_bound() -> None:
    assert budget({}) == {"maxUnavailable": "25%"}
    assert budget({"minAvailable": 3}) == {"minAvailable": 3}
    assert budget({"maxUnavailable": 0}) == {"maxUnavailable": 0}
    assert budget({"minAvailable": 3}, {"maxUnavailable": 1}) == {"minAvailable": 3}
    assert budget({}, {"minAvailable": "50%"}) == {"minAvailable": "50%"}


def test_a_learners_disruption_budget_should_take_the_other_bound() -> None:
    values = {"learner": {"podDisruptionBudget": {"enabled": True, "maxUnavailable": 0}}}
    spec = render(values).get("PodDisruptionBudget")["spec"]

    assert spec["maxUnavailable"] == 0
    assert "minAvailable" not in spec


def test_a_strategy_should_be_replaceable() -> None:
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
    recreate = {"strategy": {"type": "Recreate"}}

    assert deployment(recreate)["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment(recreate, rolling)["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment({})["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": "25%"}
    assert deployment(rolling)["spec"]["strategy"] == {"type": "RollingUpdate", **rolling["strategy"]}
    assert deployment(rolling, recreate) == deployment(rolling)


@pytest.mark.parametrize("name", ["learner", "envserver"])
def test_probes_should_be_mergeable_replaceable_and_removable(name: str) -> None:
    probes = {"startupProbe": {"exec": EXEC}, "livenessProbe": {"failureThreshold": 9}, "readinessProbe": None}
    values = {"learner": probes, "envserverDefaults": probes}
    pod = render(values).pod_templates()[
        "StatefulSet/demo-learner" if name == "learner" else "Deployment/demo-envserver"
    ]
    found = container(pod)

    assert found["startupProbe"] == {"exec": EXEC, "periodSeconds": 5, "failureThreshold": 60}
    assert found["livenessProbe"]["failureThreshold"] == 9
    assert found["livenessProbe"]["httpGet"] == HTTP
    assert "readinessProbe" not in found


def test_a_groups_probe_should_replace_that_of_the_defaults() -> None:
    defaults = {"livenessProbe": {"exec": EXEC}, "startupProbe": None}
    entry = {"livenessProbe": {"httpGet": {"path": "/alive"}}, "startupProbe": {"tcpSocket": {"port": "http"}}}
    probes = container(deployment(entry, defaults)["spec"]["template"])

    assert probes["livenessProbe"]["httpGet"] == {"path": "/alive", "port": "http"}
    assert "exec" not in probes["livenessProbe"]
    assert probes["startupProbe"]["tcpSocket"] == {"port": "http"}
