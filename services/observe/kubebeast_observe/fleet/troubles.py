"""Troubles of a fleet: pods that may not be created, pods that cannot start; and a pause, a queue, an end."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubebeast_observe.errors import RefusedError, WatchError
from kubebeast_observe.fleet.cluster import Cluster
from kubebeast_observe.fleet.pod_problem import JsonObject, said
from kubebeast_observe.fleet.state import GroupState, LearnerSet, PodState

MAX_NOTES = 5
"""Maximum number of lines about troubles; the others are counted."""

_Object = tuple[str, str]
"""Kind and name."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    what: str
    """Affected object, e.g. "pod kb-learner-0"."""
    why: str


def trouble_notes(
    cluster: Cluster, sets: Sequence[LearnerSet], groups: Sequence[GroupState], pods: Sequence[PodState]
) -> list[str]:
    """Returns a line for each distinct reason, with the affected objects. Blocks for one request at most.

    groups: with or without their pods.
    """
    short = [one for one in sets if one.current < one.desired]
    silent = [
        pod for pod in pods if not pod.problem and pod.status in ("Pending", "ContainerCreating", "Unschedulable")
    ]
    unbound = [pod for pod in pods if "PersistentVolumeClaim" in pod.problem]
    warnings: Mapping[_Object, str] = {}
    refusal = ""
    if short or silent or unbound:
        try:
            warnings = _newest_warnings(cluster)
        except RefusedError as error:
            refusal = str(error)
        except WatchError:
            pass  # the problems in the pods' own statuses are shown
    troubles = [
        _Trouble(
            f"{one.kind.lower()} {one.name}", warnings.get((one.kind, one.name)) or (refusal and f"unknown: {refusal}")
        )
        for one in short
    ]
    troubles += [_Trouble(f"deployment {group.deployment}", group.problem) for group in groups]
    troubles += [_Trouble(f"pod {pod.name}", pod.problem) for pod in pods]
    troubles += [_Trouble(f"pod {pod.name}", warnings.get(("Pod", pod.name), "")) for pod in silent]
    claims = dict.fromkeys(claim for pod in unbound for claim in pod.claims)
    troubles += [_Trouble(f"claim {name}", warnings.get(("PersistentVolumeClaim", name), "")) for name in claims]
    return list(_bounded([trouble for trouble in troubles if trouble.why]))


def rest_note(sets: Sequence[LearnerSet], release: str) -> str:
    """Returns the reason why the release should have no learner: it is paused, waits or has ended; "" if it should."""
    mine = [one for one in sets if one.release == release]
    if not mine or any(one.desired for one in mine):
        return ""
    for one in mine:
        if one.failure:
            return f"the training of release {release} has failed: job {one.name}: {one.failure}"
        if one.is_complete:
            return f"the training of release {release} is complete: job {one.name}"
        if one.queue:
            return f"release {release} waits for quota in the queue {one.queue}: job {one.name}"
    return f"release {release} is paused: its learner is scaled to zero; helm upgrade with paused=false brings it back"


def _bounded(troubles: Sequence[_Trouble]) -> Iterator[str]:
    """Yields one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for trouble in troubles:
        by_reason.setdefault(trouble.why, []).append(trouble.what)
    for why, whats in list(by_reason.items())[:MAX_NOTES]:
        more = f" and {len(whats) - 1} more" if len(whats) > 1 else ""
        yield f"{whats[0]}{more}: {why}"
    if len(by_reason) > MAX_NOTES:
        yield f"and {len(by_reason) - MAX_NOTES} further reasons"


def _newest_warnings(cluster: Cluster) -> dict[_Object, str]:
    """Returns the newest warning of each object."""
    newest: dict[_Object, JsonObject] = {}
    for event in sorted(cluster.warnings(), key=_said_at):
        with contextlib.suppress(KeyError):
            about = event["involvedObject"]
            newest[about["kind"], about["name"]] = event
    return {about: said(event) for about, event in newest.items()}


def _said_at(event: JsonObject) -> str:
    return str(
        event.get("lastTimestamp") or event.get("eventTime") or event.get("metadata", {}).get("creationTimestamp") or ""
    )
