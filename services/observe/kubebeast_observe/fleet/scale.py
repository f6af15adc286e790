"""`kubebeast fleet scale`: sets the number of env-servers of a group."""

from collections.abc import Sequence

from kubebeast_observe.errors import RefusedError, WatchError, report
from kubebeast_observe.fleet.cluster import Cluster
from kubebeast_observe.fleet.connection import connect
from kubebeast_observe.fleet.observer import list_groups
from kubebeast_observe.fleet.pod_problem import JsonObject
from kubebeast_observe.fleet.state import GroupState
from kubebeast_observe.settings import FleetScaleConfig


def run(config: FleetScaleConfig) -> int:
    """Scales one group. Returns the exit status; does not wait for pods."""
    try:
        cluster = connect(config)
        group = find_group(list_groups(cluster, config.release), config.group, cluster.namespace)
        if not config.force:
            _require_no_autoscaler(cluster, group)
        cluster.scale(group.deployment, config.replicas)
    except WatchError as error:
        return report("kubebeast fleet scale", error)
    print(f"{group.group}: {group.desired} -> {config.replicas}")
    return 0


def find_group(groups: Sequence[GroupState], name: str, namespace: str) -> GroupState:
    """Returns the group, or the Deployment, of that name. Raises WatchError unless there is exactly one."""
    found = [group for group in groups if name in (group.group, group.deployment)]
    if not found:
        known = ", ".join(_described(group) for group in groups) or "none"
        raise WatchError(f"group = {name!r}: groups of env-servers in namespace {namespace}: {known}")
    if len(found) > 1:
        candidates = " and ".join(_described(group) for group in found)
        raise WatchError(f"group = {name!r}: may be {candidates}; give --release, or the Deployment's name")
    return found[0]


def autoscaler_of(deployment: str, autoscalers: Sequence[JsonObject]) -> str:
    """Returns the Deployment's autoscaler, or the owner of it, with its bounds; "" if there is none."""
    for autoscaler in autoscalers:
        metadata, spec = autoscaler["metadata"], autoscaler["spec"]
        target = spec["scaleTargetRef"]
        if (target["kind"], target["name"]) != ("Deployment", deployment):
            continue
        bounds = f"{spec.get('minReplicas', 1)} to {spec['maxReplicas']} replicas"
        # KEDA makes an autoscaler for each ScaledObject: https://keda.sh/docs/latest/concepts/scaling-deployments/
        owners = [f"{owner['kind']} {owner['name']}" for owner in metadata.get("ownerReferences") or []]
        return f"{(owners or ['HorizontalPodAutoscaler ' + metadata['name']])[0]} ({bounds})"
    return ""


def _require_no_autoscaler(cluster: Cluster, group: GroupState) -> None:
    try:
        autoscaler = autoscaler_of(group.deployment, cluster.autoscalers())
    except RefusedError:
        return  # users that may scale need not be allowed to list autoscalers, and scaling by hand is their usual case
    if autoscaler:
        raise WatchError(
            f"{group.group}: {autoscaler} scales Deployment {group.deployment} and would undo this; "
            "change its bounds, or use --force"
        )


def _described(group: GroupState) -> str:
    release = f" of release {group.release}" if group.release else ""
    return f"{group.group} (Deployment {group.deployment}{release})"
