"""Pods go to the right nodes, by the right scheduler, and leave a lost node in time."""

from typing import Any

import pytest

from tests.chart.chart import Object, render

LOST = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
GPU = {"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}


def envserver(entry: dict[str, Any], **values: Any) -> Object:
    """Returns the spec of the pods of a group."""
    manifests = render({"envservers": {"a": {"env": "x", **entry}}, **values})
    return dict(manifests.get("Deployment")["spec"]["template"]["spec"])


def node_terms(spec: Object) -> list[Object]:
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return list(required["nodeSelectorTerms"])


def test_a_pod_should_leave_a_lost_node_soon() -> None:
    for pod in render().pod_templates().values():
        tolerations = pod["spec"]["tolerations"]
        assert {item["key"] for item in tolerations} == LOST
        assert {(item["effect"], item["tolerationSeconds"]) for item in tolerations} == {("NoExecute", 30)}


def test_how_long_a_pod_stays_should_be_what_the_values_say() -> None:
    spot = {"key": "spot", "operator": "Exists"}
    lost = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 5}

    assert envserver({"tolerations": [spot]})["tolerations"][0] == spot
    assert {item["tolerationSeconds"] for item in envserver({"lostNodeSeconds": 0})["tolerations"]} == {0}
    assert [
        item["tolerationSeconds"] for item in envserver({"tolerations": [lost]})["tolerations"] if item["key"] in LOST
    ] == [5, 30]
    assert envserver({"tolerations": [{"operator": "Exists"}]})["tolerations"] == [{"operator": "Exists"}]
    assert "tolerations" not in envserver({}, envserverDefaults={"lostNodeSeconds": None})


def test_images_of_one_architecture_should_go_to_its_nodes() -> None:
    pods = render({"image": {"architecture": "amd64"}}).pod_templates().values()

    assert [pod["spec"]["nodeSelector"] for pod in pods] == [
        {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    ] * 3
    own = {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "pool": "spot"}
    assert envserver({"nodeSelector": own}, image={"architecture": "amd64"})["nodeSelector"] == own
    assert envserver({})["nodeSelector"] == {"kubernetes.io/os": "linux"}


def test_env_servers_should_stay_off_nodes_with_a_label() -> None:
    assert node_terms(envserver({"avoidNodesWith": [GPU["key"]]})) == [{"matchExpressions": [GPU]}]
    assert "affinity" not in envserver({})


def test_staying_off_nodes_should_keep_the_affinity_of_the_values() -> None:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
    terms: list[dict[str, Any]] = [{"matchExpressions": [zone]}, {"matchFields": [{"key": "metadata.name"}]}]
    own: dict[str, dict[str, Any]] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": terms[0]}],
        },
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
    }
    spec = envserver({"affinity": own, "avoidNodesWith": [GPU["key"]]})

    assert node_terms(spec) == [{"matchExpressions": [zone, GPU]}, {**terms[1], "matchExpressions": [GPU]}]
    assert spec["affinity"]["podAntiAffinity"] == own["podAntiAffinity"]
    assert spec["affinity"]["nodeAffinity"].keys() == own["nodeAffinity"].keys()


def test_env_servers_should_have_a_runtime_and_a_scheduler_of_their_own() -> None:
    spec = envserver({"runtimeClassName": "gvisor", "schedulerName": "volcano"})

    assert (spec["runtimeClassName"], spec["schedulerName"]) == ("gvisor", "volcano")
    assert {"runtimeClassName", "schedulerName"}.isdisjoint(envserver({}))


def test_a_learner_should_have_a_scheduler_of_its_own() -> None:
    pods = render({"learner": {"schedulerName": "volcano"}}).pod_templates()

    assert pods["StatefulSet/demo-learner"]["spec"]["schedulerName"] == "volcano"
    assert "schedulerName" not in pods["Deployment/demo-envserver"]["spec"]


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"learner": {"queueName": "games"}}, ["StatefulSet"]),
        ({"learner": {"queueName": "games", "replicas": 2}}, ["StatefulSet", "StatefulSet"]),
        ({"learner": {"queueName": "games", "workload": "job"}}, ["Job"]),
        ({"learner": {"queueName": "games", "workload": "job", "replicas": 2}}, ["JobSet"]),
        ({"envserverDefaults": {"queueName": "games"}}, ["Deployment"]),
        ({"envservers": {"a": {"env": "x"}, "b": {"env": "x", "queueName": "games"}}}, ["Deployment"]),
        ({"learner": {"workload": "job", "job": {"fleetEnd": {"queueName": "games"}}}}, ["Job"]),
    ],
)
def test_exactly_the_workload_should_be_labelled_for_its_queue(values: dict[str, Any], kinds: list[str]) -> None:
    """Kueue reads the label of the workload, and adds it to pods itself where it needs it:
    https://kueue.sigs.k8s.io/docs/tasks/run/jobs/, and there .../jobsets/, .../deployment/ and .../statefulset/
    """
    manifests = render(values)
    queue = {"kueue.x-k8s.io/queue-name": "games"}
    labelled = [item for item in manifests if queue.items() <= item["metadata"]["labels"].items()]

    assert [item["kind"] for item in labelled] == kinds
    for pod in manifests.pod_templates().values():
        assert queue.items().isdisjoint(pod["metadata"]["labels"].items())


def test_pods_should_go_to_linux_unless_the_values_say_otherwise() -> None:
    for pod in render().pod_templates().values():
        assert pod["spec"]["nodeSelector"]["kubernetes.io/os"] == "linux"
    other = render({"learner": {"nodeSelector": {"kubernetes.io/os": "other"}}}).get("StatefulSet")
    assert other["spec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "other"}
