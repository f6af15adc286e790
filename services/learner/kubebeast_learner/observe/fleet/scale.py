"""`kubebeast fleet scale`: sets how many env-servers a group has."""

from collections.abc import Sequence

from kubebeast_learner.config import FleetScaleConfig
from kubebeast_learner.observe.fleet.api_objects import JsonObject
from kubebeast_learner.observe.fleet.cluster import Cluster
from kubebeast_learner.observe.fleet.connection import connect
from kubebeast_learner.observe.fleet.errors import RefusedError, WatchError, report
from kubebeast_learner.observe.fleet.observer import list_groups
from kubebeast_learner.observe.fleet.state import GroupState


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
    """The group, or the Deployment, of that name. WatchError when it is none, or more than one."""
    found = [group for group in groups if name in (group.group, group.deployment)]
    if not found:
        known = ", ".join(_described(group) for group in groups) or "none"
        raise WatchError(f"group = {name!r}: groups of env-servers in namespace {namespace}: {known}")
    if len(found) > 1:
        candidates = " and ".join(_described(group) for group in found)
        raise WatchError(f"group = {name!r}: may be {candidates}; give --release, or the Deployment's name")
    return found[0]


def autoscaler_of(deployment: str, autoscalers: Sequence[JsonObject]) -> str:
    """What else decides about the Deployment's replicas, in words; "" when nothing does."""
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
        return  # who may scale may not see autoscalers, and scaling by hand is their usual case
    if autoscaler:
        raise WatchError(
            f"{group.group}: {autoscaler} scales Deployment {group.deployment} and would undo this; "
            "change its bounds, or use --force"
        )


def _described(group: GroupState) -> str:
    release = f" of release {group.release}" if group.release else ""
    return f"{group.group} (Deployment {group.deployment}{release})"
