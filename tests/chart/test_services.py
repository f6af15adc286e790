"""Services of the learner expose its ports in the cluster, and only the streams to other networks."""

from typing import Any

from tests.chart.chart import Object, render, render_error


def external(**values: Any) -> Object:
    manifests = render({"learner": {"externalService": {"enabled": True, **values}}})
    return manifests.get("Service", "demo-learner-external")


def ports(service: Object) -> dict[str, int]:
    return {port["name"]: port["port"] for port in service["spec"]["ports"]}


def test_streams_and_metrics_should_be_reachable_in_the_cluster_only() -> None:
    manifests = render()

    assert {service["spec"].get("type", "ClusterIP") for service in manifests.of_kind("Service")} == {"ClusterIP"}
    assert ports(manifests.get("Service", "demo-learner")) == {"grpc": 4431, "http": 9090}


def test_two_ports_of_one_number_should_be_refused() -> None:
    error = render_error({"learner": {"service": {"port": 9090}}})

    assert "learner.service.port and learner.service.httpPort are both 9090" in error


def test_other_networks_should_reach_streams_and_no_metrics() -> None:
    """Ports without a token of their own, as those of /metrics and /streams, stay inside."""
    manifests = render({"learner": {"externalService": {"enabled": True, "port": 443}}})
    open_ports = [ports(item) for item in manifests.of_kind("Service") if item["spec"].get("type") == "LoadBalancer"]

    assert open_ports == [{"grpc": 443}]
    assert manifests.get("Service", "demo-learner") == render().get("Service", "demo-learner")


def test_a_load_balancer_should_be_told_who_may_connect_and_who_makes_it() -> None:
    wanted = {
        "loadBalancerClass": "service.k8s.aws/nlb",
        "loadBalancerSourceRanges": ["203.0.113.0/24"],
        "externalTrafficPolicy": "Local",
    }
    service = external(**wanted, annotations={"cloud/internal": "true"})

    assert service["spec"].items() >= wanted.items()
    assert service["metadata"]["annotations"] == {"cloud/internal": "true"}
    assert {"loadBalancerClass", "loadBalancerSourceRanges"}.isdisjoint(external()["spec"])


def test_a_node_port_should_be_chosen_by_the_values_or_by_kubernetes() -> None:
    chosen, free = external(type="NodePort", nodePort=30431), external(type="NodePort")

    assert (chosen["spec"]["type"], chosen["spec"]["ports"][0]["nodePort"]) == ("NodePort", 30431)
    assert "nodePort" not in free["spec"]["ports"][0]


def test_the_headless_service_should_not_be_a_second_target_of_scrapes() -> None:
    manifests = render()
    ports = {port["name"] for port in manifests.get("Service", "demo-learner-headless")["spec"]["ports"]}

    assert ports == {"grpc"}
    assert manifests.get("StatefulSet")["spec"]["serviceName"] == "demo-learner-headless"
