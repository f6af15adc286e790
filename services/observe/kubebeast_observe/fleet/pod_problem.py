"""Reasons why a pod does not run, as far as its own status has them."""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from kubebeast_common.text import printable

JsonObject = Mapping[str, Any]

MAX_TEXT = 500
"""Maximum number of characters of a text from the API server."""
OVERDUE_S = 30.0
"""Delay after which a deleted pod that still exists counts as lost with its node."""
NODE_LOST = "node lost"
"""Status of a pod on a node that does not answer."""

_STATUS_LISTS = (("Init:", "initContainerStatuses"), ("", "containerStatuses"))
_SAYS_NOTHING = ("ContainerCreating", "PodInitializing", "CrashLoopBackOff")
"""Waiting reasons without a useful message."""


def pod_problem(pod: JsonObject, now: datetime.datetime) -> str:
    """Returns the reason why the pod does not run, with the remedy if users must act; "" if unknown or none."""
    if is_on_lost_node(pod, now):
        return _lost_node_remedy(pod)
    status = pod.get("status", {})
    for _, container in containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("message") and waiting.get("reason") not in _SAYS_NOTHING:
            return said(waiting)
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False" and condition.get("message"):
            return said(condition)
    return said(status) if status.get("reason") and status.get("message") else ""


def is_on_lost_node(pod: JsonObject, now: datetime.datetime) -> bool:
    """Returns True if the pod's node does not answer.

    The node controller then makes the pod unready but not its containers, and a deleted pod stays past its
    grace period: https://kubernetes.io/docs/concepts/architecture/nodes/#condition
    """
    status, spec = pod.get("status", {}), pod["spec"]
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return False
    if deleted_at := pod["metadata"].get("deletionTimestamp"):
        overdue = now - datetime.datetime.fromisoformat(deleted_at)  # deletionTimestamp includes the grace period
        return overdue.total_seconds() > OVERDUE_S
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or []}
    return (
        conditions.get("Ready") == "False"
        and conditions.get("ContainersReady") == "True"
        and not spec.get("readinessGates")
    )


def containers(status: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yields the containers that have a status, in starting order, with a prefix for init containers."""
    for prefix, name in _STATUS_LISTS:
        for container in status.get(name) or []:
            yield prefix, container


def said(item: JsonObject) -> str:
    """Returns reason and message of a condition, an event or a state, on one line."""
    text = ": ".join(filter(None, (str(item.get("reason") or ""), str(item.get("message") or ""))))
    return printable(" ".join(text.split()), MAX_TEXT)


def _lost_node_remedy(pod: JsonObject) -> str:
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    namespace = pod["metadata"].get("namespace", "")
    of_namespace = f" -n {namespace}" if namespace else ""
    return (
        f"its node {node} does not answer. It goes on when the node is back. If the node is off for good: "
        f"kubectl taint node {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, before Kubernetes 1.26 "
        f"kubectl{of_namespace} delete pod {name} --force"
    )
