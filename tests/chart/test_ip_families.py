"""IPv4, IPv6 and both work: pods listen on all addresses, and Services have the right families."""

from typing import Any

import pytest
import yaml

from tests.chart.chart import container, environment, render, render_error

EVALUATOR = {"enabled": True, "image": {"repository": "e"}}


def test_everything_should_listen_on_all_addresses_of_both_families() -> None:
    manifests = render({"evaluator": EVALUATOR})
    settings = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    env_server = environment(manifests.get("Deployment", "demo-envserver")["spec"]["template"])
    evaluator = container(manifests.get("Deployment", "demo-evaluator")["spec"]["template"])

    assert (settings["address"], settings["http_address"]) == ("[::]:4431", "[::]:9090")
    assert env_server["KUBEBEAST_HTTP_ADDRESS"] == "[::]:9091"
    assert "--http-address=[::]:9090" in evaluator["args"]


@pytest.mark.parametrize(
    ("values", "policy", "families"),
    [
        ({}, "PreferDualStack", None),
        ({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}, "SingleStack", ["IPv6"]),
        ({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]}, "RequireDualStack", ["IPv6", "IPv4"]),
    ],
)
def test_services_should_have_the_families_of_the_cluster_or_of_the_values(
    values: dict[str, Any], policy: str, families: list[str] | None
) -> None:
    services = render({"learner": {"externalService": {"enabled": True}}, **values}).of_kind("Service")

    assert len(services) == 3
    for service in services:
        assert (service["spec"]["ipFamilyPolicy"], service["spec"].get("ipFamilies")) == (policy, families)


def test_an_old_cluster_should_not_be_asked_for_two_families() -> None:
    for service in render(kube_version="1.20.0").of_kind("Service"):
        assert "ipFamilyPolicy" not in service["spec"]


def test_unknown_families_should_be_refused() -> None:
    assert "ipFamilyPolicy" in render_error({"ipFamilyPolicy": "DualStack"})
    assert "ipFamilies" in render_error({"ipFamilies": ["IPv5"]})
