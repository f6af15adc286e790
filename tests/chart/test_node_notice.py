"""The learner polls for notices that its node is about to go."""

import pytest
import yaml

from tests.chart.chart import render, render_error


def settings(node_notice: str) -> dict[str, object]:
    manifests = render({"learner": {"nodeNotice": node_notice}})
    found: dict[str, object] = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    return found


@pytest.mark.parametrize("notice", ["aws", "gcp", "https://agent.example:8080/notice", "/var/notices/node"])
def test_the_learner_should_poll_what_the_value_names(notice: str) -> None:
    assert settings(notice)["node_notice"] == notice


def test_nothing_should_be_polled_by_default() -> None:
    assert "node_notice" not in settings("")


@pytest.mark.parametrize("notice", ["oracle", "notice.txt", "ftp://host/notice", "http:///notice"])
def test_a_value_that_names_nothing_should_be_refused(notice: str) -> None:
    assert "nodeNotice" in render_error({"learner": {"nodeNotice": notice}})


def test_the_network_policy_should_leave_the_way_to_a_metadata_server_open() -> None:
    manifests = render({"learner": {"nodeNotice": "aws"}, "networkPolicy": {"enabled": True}})
    assert manifests.get("NetworkPolicy", "demo-learner")["spec"]["policyTypes"] == ["Ingress"]
