"""The state of a fleet is read from Deployments and pods."""

import datetime
from typing import Any

import pytest

from kubebeast_observe.fleet.api_objects import group_state, pod_state, selector_text
from tests.unit.observe.fleet.fleet_objects import deployment, labels, pod

NOW = datetime.datetime(2026, 1, 1, 0, 2, tzinfo=datetime.UTC)


def test_a_deployment_is_a_group_of_its_label() -> None:
    group = group_state(deployment("kb-atari", "atari", desired=3, ready=1))
    assert (group.group, group.deployment, group.release) == ("atari", "kb-atari", "kb")
    assert (group.desired, group.ready) == (3, 1)


def test_a_deployment_without_the_label_is_a_group_of_its_own_name() -> None:
    item = deployment("mine", "x", ready=0)
    del item["metadata"]["labels"]["kubebeast/group"]
    group = group_state(item)
    assert (group.group, group.ready) == ("mine", 0)


def test_pods_are_those_of_the_deployments_selector() -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "zone", "operator": "NotIn", "values": ["c"]},
        {"key": "gpu", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
    ]
    text = selector_text({"matchLabels": {"app.kubernetes.io/name": "kubebeast"}, "matchExpressions": expressions})
    assert text == "app.kubernetes.io/name=kubebeast,tier in (a,b),zone notin (c),!gpu,app"


def test_a_running_pod_is_ready_and_has_a_metrics_port() -> None:
    state = pod_state(pod("p", labels("envserver")), NOW)
    assert (state.status, state.is_ready, state.node, state.age_s) == ("Running", True, "node1", 120.0)
    assert (state.metrics_port, state.restarts, state.last_exit) == (9091, 0, "")


def test_a_pod_has_a_metrics_port_for_each_of_its_learners() -> None:
    item = pod("p", labels("learner"))
    names = {"grpc": 4431, "http": 9090, "grpc-1": 4432, "http-1": 9091, "http-2": 9092}
    item["spec"]["containers"][0]["ports"] = [{"name": name, "containerPort": names[name]} for name in names]
    ports = [learner.metrics_port for learner in pod_state(item, NOW).learners()]
    assert ports == [9090, 9091, 9092]


@pytest.mark.parametrize(
    ("container", "status", "last_exit"),
    [
        (
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            },
            "CrashLoopBackOff",
            "OOMKilled",
        ),
        ({"state": {"waiting": {"reason": "ImagePullBackOff"}}}, "ImagePullBackOff", ""),
        ({"state": {"terminated": {"reason": "Error", "exitCode": 3}}}, "exit 3", ""),
        ({"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}, "Completed", ""),
    ],
)
def test_a_container_that_does_not_run_says_why(container: dict[str, Any], status: str, last_exit: str) -> None:
    state = pod_state(pod("p", {}, ready=False, restartCount=4, **container), NOW)
    assert (state.status, state.last_exit, state.restarts) == (status, last_exit, 4)
    assert not state.is_ready and state.metrics_port is None


def test_an_init_container_that_fails_is_named_as_one() -> None:
    item = pod("p", {}, ready=False, state={"waiting": {"reason": "PodInitializing"}})
    waiting = {"name": "wait", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    finished = {"name": "before", "restartCount": 0, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
    item["status"]["initContainerStatuses"] = [finished, waiting]
    state = pod_state(item, NOW)
    assert (state.status, state.restarts) == ("Init:CrashLoopBackOff", 1)


def test_a_pod_that_fits_nowhere_is_unschedulable() -> None:
    item = pod("p", {})
    del item["spec"]["nodeName"], item["status"]["containerStatuses"]
    item["status"] |= {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    state = pod_state(item, NOW)
    assert (state.status, state.node, state.is_ready, state.metrics_port) == ("Unschedulable", "", False, None)


def test_a_pod_that_is_being_deleted_is_not_ready() -> None:
    item = pod("p", {})
    item["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:10Z"
    state = pod_state(item, NOW)
    assert (state.status, state.is_ready, state.problem) == ("Terminating", False, "")


def test_a_pod_that_should_be_gone_names_its_node_and_the_remedy() -> None:
    item = pod("kb-learner-0", labels("learner"))
    item["metadata"] |= {"deletionTimestamp": "2026-01-01T00:01:00Z", "namespace": "train"}
    state = pod_state(item, NOW)
    assert (state.status, state.is_ready) == ("node lost", False)
    assert "node1 does not answer" in state.problem
    taint = "kubectl taint node node1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    assert taint in state.problem and "kubectl -n train delete pod kb-learner-0 --force" in state.problem


def test_a_pod_whose_readiness_alone_was_taken_away_is_on_a_node_that_does_not_answer() -> None:
    item = pod("kb-learner-0", labels("learner"))
    item["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "ContainersReady", "status": "True"},
    ]
    assert pod_state(item, NOW).status == "node lost"
    item["spec"]["readinessGates"] = [{"conditionType": "example.com/ready"}]
    assert pod_state(item, NOW).status == "Running"


@pytest.mark.parametrize(
    "state", [{"reason": "ContainerCreating"}, {"reason": "CrashLoopBackOff", "message": "back-off"}]
)
def test_what_a_status_says_already_is_no_problem_of_its_own(state: dict[str, str]) -> None:
    assert pod_state(pod("p", {}, ready=False, state={"waiting": state}), NOW).problem == ""


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    waiting = {
        "reason": "ErrImagePull",
        "message": 'failed to pull "registry.example.com/kubebeast/learner:9"\nnot found',
    }
    state = pod_state(pod("p", {}, ready=False, state={"waiting": waiting}), NOW)
    assert state.problem == 'ErrImagePull: failed to pull "registry.example.com/kubebeast/learner:9" not found'


def test_what_a_pod_lacks_on_the_nodes_is_named() -> None:
    item = pod("p", {})
    del item["spec"]["nodeName"], item["status"]["containerStatuses"]
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    item["status"] |= {"phase": "Pending", "conditions": [condition]}
    assert pod_state(item, NOW).problem == f"Unschedulable: {message}"


def test_a_group_whose_pods_are_refused_says_by_what() -> None:
    item = deployment("kb-atari", "atari", ready=0)
    message = 'pods "kb-atari-x" is forbidden: exceeded quota: small'
    item["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    ]
    assert group_state(item).problem == f"FailedCreate: {message}"


def test_a_release_is_called_by_its_full_name_or_by_what_an_older_chart_has_written() -> None:
    mine = labels("envserver", "games")
    assert pod_state(pod("p", mine), NOW).release == "games"
    assert pod_state(pod("p", mine | {"kubebeast/name": "games-red"}), NOW).release == "games-red"


def test_an_evicted_pod_says_so() -> None:
    item = pod("p", {}, ready=False, state={"terminated": {"exitCode": 137}})
    item["status"] |= {"phase": "Failed", "reason": "Evicted"}
    assert pod_state(item, NOW).status == "Evicted"
