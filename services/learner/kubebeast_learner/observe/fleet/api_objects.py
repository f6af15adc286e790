"""Reads the API server's objects: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from kubebeast_learner.observe.fleet.state import GroupState, PodState

JsonObject = Mapping[str, Any]

COMPONENT_SELECTOR = "app.kubernetes.io/name=kubebeast,app.kubernetes.io/component={component}"
RELEASE_LABEL = "app.kubernetes.io/instance"
GROUP_LABEL = "kubebeast/group"
HTTP_PORT = "http"
"""Name of the container port with /metrics; of a pod with several learners the others' are http-1, http-2, ..."""

_STATUS_LISTS = (("Init:", "initContainerStatuses"), ("", "containerStatuses"))


def group_state(deployment: JsonObject) -> GroupState:
    """A Deployment of env-servers, without its pods."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    labels = metadata.get("labels") or {}
    return GroupState(
        group=labels.get(GROUP_LABEL) or metadata["name"],
        release=labels.get(RELEASE_LABEL, ""),
        deployment=metadata["name"],
        desired=spec.get("replicas", 1),
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        selector=selector_text(spec["selector"]),
    )


def pod_state(pod: JsonObject, now: datetime.datetime) -> PodState:
    """now: with its time zone."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    ports = _metrics_ports(spec, status)
    created_at = datetime.datetime.fromisoformat(metadata["creationTimestamp"])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])
    return PodState(
        name=metadata["name"],
        uid=metadata["uid"],
        release=(metadata.get("labels") or {}).get(RELEASE_LABEL, ""),
        node=spec.get("nodeName", ""),
        status=_status(pod),
        is_ready=ready and "deletionTimestamp" not in metadata,
        restarts=sum(container["restartCount"] for _, container in _containers(status)),
        last_exit=_last_exit(status),
        age_s=max(0.0, (now - created_at).total_seconds()),
        metrics_port=ports[0] if ports else None,
        further_metrics_ports=tuple(ports[1:]),
    )


def selector_text(selector: JsonObject) -> str:
    """A LabelSelector as the text that lists take.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or []:
        key, values = rule["key"], ",".join(rule.get("values") or [])
        words = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(words[rule["operator"]])
    return ",".join(parts)


def _status(pod: JsonObject) -> str:
    """What kubectl's STATUS column shows: the most telling reason, or the phase."""
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    if status.get("reason"):  # Evicted, NodeLost
        return str(status["reason"])
    for prefix, container in _containers(status):
        state = container.get("state") or {}
        if "waiting" in state:
            return prefix + str(state["waiting"].get("reason", "Waiting"))
        if "terminated" in state and not (prefix and state["terminated"]["exitCode"] == 0):
            return prefix + _exit_text(state["terminated"])
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("reason", "Unschedulable"))
    return str(status.get("phase", "Unknown"))


def _containers(status: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The containers that have a status, in the order in which they start, with a prefix for init containers."""
    for prefix, name in _STATUS_LISTS:
        for container in status.get(name) or []:
            yield prefix, container


def _last_exit(status: JsonObject) -> str:
    ends = [
        c["lastState"]["terminated"] for _, c in _containers(status) if (c.get("lastState") or {}).get("terminated")
    ]
    return _exit_text(max(ends, key=lambda end: end.get("finishedAt") or "")) if ends else ""


def _exit_text(terminated: JsonObject) -> str:
    """The kubelet's reason; the exit status says more than its Error."""
    reason = terminated.get("reason") or "Error"
    return f"exit {terminated['exitCode']}" if reason == "Error" else str(reason)


def _metrics_ports(spec: JsonObject, status: JsonObject) -> list[int]:
    """The port named http of a container that runs, and those of further learners."""
    running = {c["name"] for _, c in _containers(status) if "running" in (c.get("state") or {})}
    containers = [container for container in spec["containers"] if container["name"] in running]
    ports = [port for container in containers for port in container.get("ports") or []]
    numbers = {port.get("name", ""): port["containerPort"] for port in ports}
    names = [HTTP_PORT, *(f"{HTTP_PORT}-{rank}" for rank in range(1, len(ports)))]
    return [numbers[name] for name in names if name in numbers]
