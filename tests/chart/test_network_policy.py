"""NetworkPolicies admit the peers that each pod needs, and no others."""

from typing import Any

from tests.chart.chart import Object, render

ON = {"enabled": True}


def policy(name: str, values: dict[str, Any] | None = None) -> Object:
    manifest = render({"networkPolicy": {**ON, **(values or {})}}).get("NetworkPolicy", name)
    return dict(manifest["spec"])


def selects(selector: Object, labels: Object) -> bool:
    """Returns True if a label selector with matchLabels and In-expressions selects a pod with these labels."""
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(expression["key"]) in expression["values"] for expression in selector.get("matchExpressions", [])
    )


def pod_labels() -> dict[str, Object]:
    return {name: pod["metadata"]["labels"] for name, pod in render().pod_templates().items()}


def test_there_should_be_none_by_default() -> None:
    assert not render().has("NetworkPolicy")


def test_each_policy_should_select_its_own_pods() -> None:
    def selected(name: str) -> set[str]:
        return {pod for pod, labels in pod_labels().items() if selects(policy(name)["podSelector"], labels)}

    assert selected("demo-learner") == {"StatefulSet/demo-learner"}
    assert selected("demo-envserver") == {"Deployment/demo-envserver", "Pod/demo-test-stream"}


def test_env_servers_and_the_test_should_reach_the_learner() -> None:
    streams = policy("demo-learner")["ingress"][0]
    allowed = {name for name, labels in pod_labels().items() if selects(streams["from"][0]["podSelector"], labels)}

    assert streams["ports"] == [{"port": 4431, "protocol": "TCP"}]
    assert allowed == {"Deployment/demo-envserver", "Pod/demo-test-stream"}


def test_another_release_should_not_reach_the_learner() -> None:
    allowed = policy("demo-learner")["ingress"][0]["from"][0]["podSelector"]
    other = render(release="other").get("Deployment")["spec"]["template"]["metadata"]["labels"]

    assert not selects(allowed, other)


def test_metrics_should_be_readable_in_the_cluster_or_by_chosen_peers() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]

    assert policy("demo-learner")["ingress"][1]["from"] == [{"namespaceSelector": {}}]
    assert policy("demo-learner", {"learner": {"metricsFrom": peers}})["ingress"][1]["from"] == peers
    assert policy("demo-envserver", {"envserver": {"metricsFrom": peers}})["ingress"][0]["from"] == peers


def test_env_servers_should_reach_the_learner_and_dns_only() -> None:
    egress = policy("demo-envserver")["egress"]
    learner = pod_labels()["StatefulSet/demo-learner"]

    assert selects(egress[0]["to"][0]["podSelector"], learner)
    assert egress[0]["ports"] == [{"port": 4431, "protocol": "TCP"}]
    assert egress[1:] == [{"ports": [{"port": n, "protocol": kind} for n in (53, 5353) for kind in ("UDP", "TCP")]}]


def test_rules_should_be_extensible() -> None:
    ingress = {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    egress = {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}

    assert policy("demo-learner", {"learner": {"extraIngress": [ingress]}})["ingress"][-1] == ingress
    assert policy("demo-envserver", {"envserver": {"extraEgress": [egress]}})["egress"][-1] == egress
    assert policy("demo-envserver", {"envserver": {"allowEgress": True}})["egress"] == [{}]


def test_dns_should_be_reached_where_its_pods_listen_elsewhere() -> None:
    """As on OpenShift, where the network checks the pod's port."""
    policy = render({"networkPolicy": {"enabled": True}}).get("NetworkPolicy", "demo-envserver")
    ports = {(port["port"], port["protocol"]) for rule in policy["spec"]["egress"] for port in rule["ports"]}

    assert {(number, protocol) for number in (53, 5353) for protocol in ("TCP", "UDP")} <= ports
