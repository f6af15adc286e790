"""Groups of env-servers scale by the learner's demand, with a HorizontalPodAutoscaler or with KEDA."""

import re
from typing import Any

import pytest
import yaml

from tests.chart.chart import CHART, Manifests, Object, render, render_error

ADDRESS = "http://prometheus.monitoring.svc:9090"
KEDA = {"enabled": True, "prometheusAddress": ADDRESS}
HPA = {"enabled": True}


def group(name: str = "pong", **autoscaling: Any) -> dict[str, Any]:
    """Returns one group as an entry of `envservers`."""
    return {"name": name, "env": "PongNoFrameskip-v4", "autoscaling": autoscaling}


def rendered(*groups: dict[str, Any]) -> Manifests:
    return render({"envservers": list(groups)})


def hpa_and_keda(*, keda: dict[str, Any] = KEDA, **autoscaling: Any) -> tuple[Object, Object]:
    """Returns the HorizontalPodAutoscaler and the ScaledObject of two groups with the same settings."""
    manifests = rendered(group("a", hpa=HPA, **autoscaling), group("b", keda=keda, **autoscaling))
    return manifests.get("HorizontalPodAutoscaler"), manifests.get("ScaledObject")


def trigger_of(scaled_object: Object) -> dict[str, Any]:
    (trigger,) = scaled_object["spec"]["triggers"]
    assert isinstance(trigger, dict)
    return trigger


def test_no_group_should_scale_by_itself_by_default() -> None:
    manifests = render()

    assert not manifests.has("HorizontalPodAutoscaler")
    assert not manifests.has("ScaledObject")


def test_each_group_should_have_the_autoscaler_that_it_asks_for() -> None:
    manifests = rendered(group("a", hpa=HPA), group("b", keda=KEDA), group("c"))

    assert [item["metadata"]["name"] for item in manifests.of_kind("HorizontalPodAutoscaler")] == ["demo-a"]
    assert [item["metadata"]["name"] for item in manifests.of_kind("ScaledObject")] == ["demo-b"]
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        target = manifests.get(kind)["spec"]["scaleTargetRef"]
        assert "replicas" not in manifests.get(target["kind"], target["name"])["spec"]


def test_the_target_should_be_the_demand_at_the_wanted_share_of_waiting() -> None:
    wanted = {0: "1000m", 0.1: "1111m", 0.5: "2000m", 0.75: "4000m"}
    hpas = [group(f"hpa-{i}", hpa=HPA, targetStarvedRatio=ratio) for i, ratio in enumerate(wanted)]
    kedas = [group(f"keda-{i}", keda=KEDA, targetStarvedRatio=ratio) for i, ratio in enumerate(wanted)]
    manifests = rendered(*hpas, *kedas)
    targets = [
        item["spec"]["metrics"][0]["external"]["target"] for item in manifests.of_kind("HorizontalPodAutoscaler")
    ]
    thresholds = [float(trigger_of(item)["metadata"]["threshold"]) for item in manifests.of_kind("ScaledObject")]

    assert targets == [{"type": "Value", "value": quantity} for quantity in wanted.values()]
    assert [f"{round(threshold * 1000)}m" for threshold in thresholds] == [*wanted.values()]


def test_the_metric_should_be_that_of_the_release_unless_another_is_selected() -> None:
    other = {"matchLabels": {"job": "x"}}
    manifests = rendered(group("a", hpa=HPA), group("b", hpa={**HPA, "metricName": "demand", "metricSelector": other}))
    release = {"matchLabels": {"service": "demo-learner"}}

    assert [
        item["spec"]["metrics"][0]["external"]["metric"] for item in manifests.of_kind("HorizontalPodAutoscaler")
    ] == [
        {"name": "kubebeast_learner_demand_ratio", "selector": release},
        {"name": "demand", "selector": other},
    ]


def test_bounds_should_arrive_as_integers() -> None:
    hpa, scaled_object = (item["spec"] for item in hpa_and_keda(minReplicas=3, maxReplicas=1_000_000))

    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (3, 1_000_000)
    assert (scaled_object["minReplicaCount"], scaled_object["maxReplicaCount"]) == (3, 1_000_000)
    assert scaled_object["pollingInterval"] == 30


def test_a_fleet_should_at_most_double_in_a_minute_and_shrink_slowly() -> None:
    hpa, scaled_object = hpa_and_keda()
    behavior = hpa["spec"]["behavior"]

    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 90
    assert behavior["scaleUp"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 60}]
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 25, "periodSeconds": 300}]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 300
    assert scaled_object["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == behavior


def test_a_behaviour_of_the_user_should_replace_the_default() -> None:
    own = {"scaleDown": {"selectPolicy": "Disabled"}}
    hpa, scaled_object = hpa_and_keda(behavior=own)

    assert hpa["spec"]["behavior"] == own
    assert scaled_object["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == own


def test_keda_should_ask_for_what_the_rule_records_of_this_release() -> None:
    groups = yaml.safe_load((CHART / "rules" / "kubebeast.yaml").read_text(encoding="utf-8"))["groups"]
    recorded = {rule["record"]: rule["expr"] for item in groups for rule in item["rules"] if "record" in rule}
    demand = recorded["kubebeast_learner_demand_ratio"]
    query = trigger_of(hpa_and_keda()[1])["metadata"]["query"]
    release = '{namespace="training",service="demo-learner"}'

    assert query.count(release) == len(re.findall(r"kubebeast_\w+", query))
    assert query.replace(release, "") == demand.replace("by (cluster, namespace, job, service)", "by (service)")


def test_keda_should_keep_the_fleet_of_a_learner_that_is_not_read() -> None:
    trigger = trigger_of(hpa_and_keda()[1])

    assert trigger["metricType"] == "Value"
    assert trigger["metadata"]["serverAddress"] == ADDRESS
    assert trigger["metadata"]["ignoreNullValues"] == "false"


def test_keda_should_fall_back_to_a_number_of_pods_where_the_user_gives_one() -> None:
    fallback = {"failureThreshold": 3, "replicas": 6}

    assert hpa_and_keda(keda={**KEDA, "fallback": fallback})[1]["spec"]["fallback"] == fallback
    assert "fallback" not in hpa_and_keda()[1]["spec"]


def test_keda_should_take_query_metadata_and_authentication_of_the_user() -> None:
    authentication = {"name": "prometheus", "kind": "ClusterTriggerAuthentication"}
    metadata = {"authModes": "bearer", "unsafeSsl": True, "timeout": 1000}
    own = {**KEDA, "query": "vector(1)", "metadata": metadata, "authenticationRef": authentication}
    trigger = trigger_of(hpa_and_keda(keda=own)[1])

    assert trigger["authenticationRef"] == authentication
    assert trigger["metadata"]["query"] == "vector(1)"
    assert trigger["metadata"]["unsafeSsl"] == "true", "KEDA's metadata are strings"
    assert trigger["metadata"]["timeout"] == "1000"


@pytest.mark.parametrize(
    ("autoscaling", "message"),
    [
        ({"hpa": HPA, "keda": KEDA}, 'the group "pong" has both hpa.enabled and keda.enabled'),
        ({"keda": {"enabled": True}}, 'the group "pong" requires autoscaling.keda.prometheusAddress'),
        ({"hpa": HPA, "minReplicas": 9, "maxReplicas": 8}, 'the group "pong": minReplicas is 9, above maxReplicas 8'),
        ({"keda": KEDA, "minReplicas": 9, "maxReplicas": 8}, 'the group "pong": minReplicas is 9, above maxReplicas 8'),
    ],
)
def test_settings_that_contradict_each_other_should_be_refused(autoscaling: dict[str, Any], message: str) -> None:
    assert message in render_error({"envservers": [group("other"), group(**autoscaling)]})


@pytest.mark.parametrize(("name", "value"), [("minReplicas", 0), ("targetStarvedRatio", 0.95)])
def test_a_bound_without_a_meaning_should_be_refused_by_name(name: str, value: float) -> None:
    autoscaling: dict[str, Any] = {"hpa": HPA, name: value}

    assert name in render_error({"envservers": [group(**autoscaling)]})


def test_an_old_cluster_should_get_the_api_that_it_has() -> None:
    values = {"envservers": [group(hpa=HPA)]}
    old = render(values, kube_version="1.20.0").get("HorizontalPodAutoscaler")
    new = render(values).get("HorizontalPodAutoscaler")

    assert (old["apiVersion"], new["apiVersion"]) == ("autoscaling/v2beta2", "autoscaling/v2")
    assert old["spec"] == new["spec"]
