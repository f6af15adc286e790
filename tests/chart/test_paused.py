"""A paused release has no pods, hence no GPU and no nodes; the run and the settings stay."""

from typing import Any

from tests.chart.chart import render, render_error

PAUSED: dict[str, Any] = {"paused": True}


def test_a_paused_release_should_have_no_pods() -> None:
    manifests = render(PAUSED | {"envservers": {"a": {"env": "x", "replicas": 48}, "b": {"env": "x"}}})
    workloads = manifests.of_kind("StatefulSet") + manifests.of_kind("Deployment")

    assert [item["spec"]["replicas"] for item in workloads] == [0, 0, 0]
    assert not manifests.has("Pod"), "the test would wait for a learner"


def test_a_paused_release_should_keep_everything_else() -> None:
    def rest(values: dict[str, Any]) -> list[Any]:
        manifests = render(values)
        pods = [item["spec"]["template"] for item in manifests if item["kind"] in ("StatefulSet", "Deployment")]
        return pods + [item for item in manifests if item["kind"] not in ("StatefulSet", "Deployment", "Pod")]

    assert rest(PAUSED) == rest({})


def test_no_autoscaler_should_wake_a_paused_fleet() -> None:
    for scaler in ({"hpa": {"enabled": True}}, {"keda": {"enabled": True, "prometheusAddress": "x"}}):
        manifests = render(PAUSED | {"envserverDefaults": {"autoscaling": scaler}})
        assert manifests.get("Deployment")["spec"]["replicas"] == 0
        assert not manifests.has("HorizontalPodAutoscaler")
        assert not manifests.has("ScaledObject")
    assert render(PAUSED | {"envserverDefaults": {"scaledByOthers": True}}).get("Deployment")["spec"]["replicas"] == 0


def test_a_pause_that_would_delete_the_run_should_be_refused() -> None:
    retention = {"learner": {"persistence": {"retention": {"whenScaled": "Delete"}}}}

    assert "the run would be deleted" in render_error(PAUSED | retention)
    assert render(retention).has("StatefulSet")
