"""Objects of an API server, reduced to the fields that are read."""

from typing import Any

from kubebeast_observe.fleet.state import PodState

CREATED_AT = "2026-01-01T00:00:00Z"


def labels(component: str, release: str = "kb", group: str = "") -> dict[str, str]:
    common = {
        "app.kubernetes.io/name": "kubebeast",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/instance": release,
    }
    return common | ({"kubebeast/group": group} if group else {})


def deployment(name: str, group: str, release: str = "kb", *, desired: int = 2, ready: int = 2) -> dict[str, Any]:
    mine = labels("envserver", release, group)
    return {
        "metadata": {"name": name, "labels": mine | {"app.kubernetes.io/version": "0.1.0"}},
        "spec": {"replicas": desired, "selector": {"matchLabels": mine}},
        "status": {"readyReplicas": ready} if ready else {},
    }


def stateful_set(name: str, release: str = "kb", *, desired: int = 1, current: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels("learner", release)},
        "spec": {"replicas": desired},
        "status": {"replicas": current},
    }


def job(
    name: str,
    release: str = "kb",
    *,
    component: str = "learner",
    run: str = "",
    queue: str = "",
    ended: str = "",
    **spec: Any,
) -> dict[str, Any]:
    """Returns the Job of a learner, or of another component. run: of a sweep. ended: its condition, with a message of
    its own.
    """
    mine = labels(component, release) | ({"kueue.x-k8s.io/queue-name": queue} if queue else {})
    mine |= {"kubebeast/run": run} if run else {}
    condition = {"type": ended, "status": "True", "reason": f"Is{ended}", "message": "so it is"}
    status = {"conditions": [condition]} if ended else {"active": 1}
    return {"metadata": {"name": name, "labels": mine}, "spec": {"parallelism": 1, **spec}, "status": status}


def warning(kind: str, name: str, reason: str, message: str, at: str = CREATED_AT) -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {"metadata": {}, "involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at}


def pod(name: str, pod_labels: dict[str, str], **changes: Any) -> dict[str, Any]:
    """Returns a ready pod with metrics on port 9091. changes: fields of its one container's status."""
    container = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}, "lastState": {}} | changes
    return {
        "metadata": {"name": name, "uid": f"uid of {name}", "labels": pod_labels, "creationTimestamp": CREATED_AT},
        "spec": {
            "nodeName": "node1",
            "containers": [{"name": "main", "ports": [{"name": "http", "containerPort": 9091, "protocol": "TCP"}]}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if container["ready"] else "False"}],
            "containerStatuses": [container],
        },
    }


def autoscaler(name: str, target: str, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}, "minReplicas": 1, "maxReplicas": 16},
    }


def env_server_metrics(steps: float, streams: int = 2) -> str:
    return (
        "# HELP kubebeast_envserver_env_steps_total Actions that environments executed.\n"
        "# TYPE kubebeast_envserver_env_steps_total counter\n"
        f"kubebeast_envserver_env_steps_total {steps}\n"
        "# TYPE kubebeast_envserver_streams_connected gauge\n"
        f"kubebeast_envserver_streams_connected {streams}.0\n"
    )


def pod_state(name: str = "kb-envserver-0", **changes: Any) -> PodState:
    values: dict[str, Any] = {
        "uid": f"uid of {name}",
        "release": "kb",
        "node": "node1",
        "status": "Running",
        "is_ready": True,
        "restarts": 0,
        "last_exit": "",
        "age_s": 90.0,
        "metrics_port": 9091,
    }
    return PodState(name=name, **(values | changes))
