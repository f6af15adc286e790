"""Env-servers can be installed alone, for a learner of another release, another cluster, or no cluster at all."""

from typing import Any

import pytest

from kubebeast_envserver.config import parse
from tests.chart.chart import Manifests, environment, render, render_error

ADDRESS = "learner.example.com:5000"
ALL_ON: dict[str, Any] = {
    "networkPolicy": {"enabled": True},
    "monitoring": {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor")},
}


def elsewhere(values: dict[str, Any] | None = None, **learner: Any) -> Manifests:
    return render({"learner": {"enabled": False, "address": ADDRESS, **learner}, **(values or {})})


def test_env_servers_should_dial_the_learner_that_is_named() -> None:
    pods = elsewhere().pod_templates()

    assert pods.keys() == {"Deployment/demo-envserver", "Pod/demo-test-stream"}
    for pod in pods.values():
        variables = environment(pod)
        variables["KUBEBEAST_ENV_SERVER_ID"] = "x"
        assert parse([], variables).address == ADDRESS


def test_nothing_of_a_learner_should_be_made() -> None:
    on = {"enabled": True}
    manifests = elsewhere(ALL_ON, podDisruptionBudget=on, externalService=on)

    assert [item["metadata"]["name"] for item in manifests if "demo-learner" in item["metadata"]["name"]] == []
    assert {item["kind"] for item in manifests} == {
        "Deployment",
        "NetworkPolicy",
        "Pod",
        "PodMonitor",
        "ServiceAccount",
    }


def test_env_servers_should_be_allowed_to_reach_it() -> None:
    egress = elsewhere(ALL_ON).get("NetworkPolicy")["spec"]["egress"]

    assert egress[0] == {"ports": [{"port": 5000, "protocol": "TCP"}]}


def test_token_and_authority_should_come_from_secrets() -> None:
    access = {"token": {"enabled": True, "existingSecret": "t"}, "tls": {"enabled": True, "existingSecret": "ca"}}
    pod = elsewhere(access).get("Deployment")["spec"]["template"]
    (volume,) = (item["projected"] for item in pod["spec"]["volumes"] if item["name"] == "access")

    assert [source["secret"]["name"] for source in volume["sources"]] == ["t", "ca"]
    assert [item["path"] for item in volume["sources"][1]["secret"]["items"]] == ["ca.crt"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": {"enabled": False}}, "learner.address must be set to the address that"),
        ({"learner": {"address": ADDRESS}}, "it requires learner.enabled=false"),
        (
            {
                "learner": {"enabled": False, "address": ADDRESS},
                "tls": {"enabled": True, "certManager": {"enabled": True, "issuerRef": {"name": "x"}}},
            },
            "tls.existingSecret must contain the ca.crt",
        ),
        (
            {
                "learner": {"enabled": False, "address": ADDRESS},
                "envserverDefaults": {"autoscaling": {"hpa": {"enabled": True}}},
            },
            'the autoscaling of the group "envserver" requires hpa.metricSelector or keda.query',
        ),
    ],
)
def test_what_is_missing_should_be_named(values: dict[str, Any], message: str) -> None:
    assert message in render_error(values)
