"""Reader of the API server's objects: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/"""

import datetime

from kubebeast_observe.fleet.pod_problem import (
    NODE_LOST,
    JsonObject,
    containers,
    is_on_lost_node,
    pod_problem,
    said,
)
from kubebeast_observe.fleet.state import GroupState, LearnerSet, PodState

COMPONENT_SELECTOR = "app.kubernetes.io/name=kubebeast,app.kubernetes.io/component={component}"
RUN_LABEL = "kubebeast/run"
"""Label of the Jobs and pods of the runs of a sweep."""
NAME_LABEL, INSTANCE_LABEL = "kubebeast/name", "app.kubernetes.io/instance"
"""Labels of a release: its full name, or the instance label of older charts."""
GROUP_LABEL = "kubebeast/group"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
HTTP_PORT = "http"
"""Name of the container port with /metrics; further learners in the pod use http-1, http-2, ..."""


def group_state(deployment: JsonObject) -> GroupState:
    """Reads a Deployment of env-servers or of an evaluator, without its pods."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    labels = metadata.get("labels") or {}
    return GroupState(
        group=labels.get(GROUP_LABEL) or metadata["name"],
        release=release_of(deployment),
        deployment=metadata["name"],
        desired=spec.get("replicas", 1),
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        selector=selector_text(spec["selector"]),
        problem=_creation_problem(deployment),
    )


def learner_set(stateful_set: JsonObject) -> LearnerSet:
    return LearnerSet(
        name=stateful_set["metadata"]["name"],
        release=release_of(stateful_set),
        desired=stateful_set["spec"].get("replicas", 1),
        current=stateful_set.get("status", {}).get("replicas", 0),
    )


def learner_job(job: JsonObject) -> LearnerSet:
    """Reads a Job, alone or of a JobSet. A suspended one with a queue waits in it: Kueue starts it."""
    labels, spec, status = job["metadata"].get("labels") or {}, job["spec"], job.get("status", {})
    reached = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    has_ended = "Complete" in reached or "Failed" in reached
    is_suspended = bool(spec.get("suspend")) and not has_ended
    return LearnerSet(
        kind="Job",
        name=job["metadata"]["name"],
        release=release_of(job),
        desired=0 if has_ended or is_suspended else spec.get("parallelism", 1),
        current=status.get("active", 0),
        queue=str(labels.get(QUEUE_LABEL, "")) if is_suspended else "",
        is_complete="Complete" in reached,
        failure=said(reached["Failed"]) if "Failed" in reached else "",
        is_of_run=RUN_LABEL in labels,
    )


def release_of(item: JsonObject) -> str:
    """Returns the release of an object; "" without one."""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get(NAME_LABEL) or labels.get(INSTANCE_LABEL) or "")


def pod_state(pod: JsonObject, now: datetime.datetime) -> PodState:
    """Reads a pod. now: time with a time zone."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    ports = _metrics_ports(spec, status)
    created_at = datetime.datetime.fromisoformat(metadata["creationTimestamp"])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])
    return PodState(
        name=metadata["name"],
        uid=metadata["uid"],
        release=release_of(pod),
        node=spec.get("nodeName", ""),
        status=NODE_LOST if is_on_lost_node(pod, now) else _status(pod),
        has_ended=status.get("phase") in ("Succeeded", "Failed"),
        problem=pod_problem(pod, now),
        claims=_claims(spec),
        is_ready=ready and "deletionTimestamp" not in metadata,
        restarts=sum(container["restartCount"] for _, container in containers(status)),
        last_exit=_last_exit(status),
        age_s=max(0.0, (now - created_at).total_seconds()),
        metrics_port=ports[0] if ports else None,
        further_metrics_ports=tuple(ports[1:]),
    )


def selector_text(selector: JsonObject) -> str:
    """Returns a LabelSelector in the text form of list requests.

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


def _creation_problem(deployment: JsonObject) -> str:
    """Returns the reason why pods are missing: a quota, an admission webhook, a policy; "" if they are not refused."""
    conditions = deployment.get("status", {}).get("conditions") or []
    refused = [item for item in conditions if item["type"] == "ReplicaFailure" and item["status"] == "True"]
    return said(refused[0]) if refused else ""


def _claims(spec: JsonObject) -> tuple[str, ...]:
    volumes = spec.get("volumes") or []
    return tuple(item["persistentVolumeClaim"]["claimName"] for item in volumes if "persistentVolumeClaim" in item)


def _status(pod: JsonObject) -> str:
    """Returns kubectl's STATUS column: the most specific reason, or the phase."""
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    if status.get("reason"):  # Evicted, NodeLost
        return str(status["reason"])
    for prefix, container in containers(status):
        state = container.get("state") or {}
        if "waiting" in state:
            return prefix + str(state["waiting"].get("reason", "Waiting"))
        if "terminated" in state and not (prefix and state["terminated"]["exitCode"] == 0):
            return prefix + _exit_text(state["terminated"])
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("reason", "Unschedulable"))
    return str(status.get("phase", "Unknown"))


def _last_exit(status: JsonObject) -> str:
    ends = [c["lastState"]["terminated"] for _, c in containers(status) if (c.get("lastState") or {}).get("terminated")]
    return _exit_text(max(ends, key=lambda end: end.get("finishedAt") or "")) if ends else ""


def _exit_text(terminated: JsonObject) -> str:
    """Returns the kubelet's reason; the exit status if that is only Error."""
    reason = terminated.get("reason") or "Error"
    return f"exit {terminated['exitCode']}" if reason == "Error" else str(reason)


def _metrics_ports(spec: JsonObject, status: JsonObject) -> list[int]:
    """Returns the port named http of a running container, and those of further learners."""
    running = {c["name"] for _, c in containers(status) if "running" in (c.get("state") or {})}
    serving = [container for container in spec["containers"] if container["name"] in running]
    ports = [port for container in serving for port in container.get("ports") or []]
    numbers = {port.get("name", ""): port["containerPort"] for port in ports}
    names = [HTTP_PORT, *(f"{HTTP_PORT}-{rank}" for rank in range(1, len(ports)))]
    return [numbers[name] for name in names if name in numbers]
