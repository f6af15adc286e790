"""What a fleet is like at one moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubebeast_learner.observe.numbers import total


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a pod's metrics say; None where they do not."""

    streams: int | None = None
    """Of an env-server those that a learner has welcomed, of a learner those it has."""
    steps_per_second: float | None = None
    """Env-steps, over the time between two scrapes."""
    step: int | None = None
    """Env-steps that a learner has trained on."""
    total_steps: int | None = None
    rank: str = ""
    """Of a learner among several; "" of one that is alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodState:
    name: str
    uid: str
    release: str
    """The Helm release, "" without one."""
    node: str
    """"" until it is scheduled."""
    status: str
    """Why it does not run (CrashLoopBackOff, ImagePullBackOff, Unschedulable ...), or its phase."""
    is_ready: bool
    restarts: int
    """Of all its containers."""
    last_exit: str
    """How a container of it ended last: OOMKilled, exit 3 ...; "" if none has."""
    age_s: float
    metrics_port: int | None
    """Where a running container serves /metrics; None: nowhere."""
    further_metrics_ports: tuple[int, ...] = ()
    """Of the learners in it but the first."""
    reading: Reading = Reading()

    def learners(self) -> Iterator["PodState"]:
        """The pod once for each learner in it, with that one's port."""
        yield replace(self, further_metrics_ports=())
        for port in self.further_metrics_ports:
            yield replace(self, metrics_port=port, further_metrics_ports=())


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupState:
    """A group of env-servers: a Deployment and its pods."""

    group: str
    release: str
    deployment: str
    desired: int
    ready: int
    selector: str
    """Of its pods, in the syntax of label selectors."""
    pods: tuple[PodState, ...] = ()

    @property
    def restarts(self) -> int:
        return sum(pod.restarts for pod in self.pods)

    @property
    def streams(self) -> int | None:
        """Of the pods that were read; None if none was."""
        return total(pod.reading.streams for pod in self.pods)

    @property
    def steps_per_second(self) -> float | None:
        """Of the pods that were read; None if none was."""
        return total(pod.reading.steps_per_second for pod in self.pods)


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetState:
    namespace: str
    learners: Sequence[PodState]
    groups: Sequence[GroupState]
    notes: Sequence[str] = ()
    """What could not be seen, and why."""

    @property
    def num_releases(self) -> int:
        return len({pod.release for pod in self.learners} | {group.release for group in self.groups})


def as_json(state: FleetState) -> dict[str, Any]:
    """What --json prints: namespace, notes, and two lists; null where a value is unknown.

    pods: pod, release, node, status, ready, restarts, last_exit, age_s, streams, steps_per_second.
    learners: the same of each learner, of which a pod may have several, and rank, step and total_steps.
    groups: group, release, deployment, desired, ready, restarts, streams, steps_per_second, pods.
    """
    names = ("group", "release", "deployment", "desired", "ready", "restarts", "streams", "steps_per_second")
    return {
        "namespace": state.namespace,
        "learners": [
            _pod(pod) | {name: getattr(pod.reading, name) for name in ("rank", "step", "total_steps")}
            for pod in state.learners
        ],
        "groups": [
            {name: getattr(group, name) for name in names} | {"pods": [_pod(pod) for pod in group.pods]}
            for group in state.groups
        ],
        "notes": list(state.notes),
    }


def _pod(pod: PodState) -> dict[str, Any]:
    return {
        "pod": pod.name,
        **{name: getattr(pod, name) for name in ("release", "node", "status")},
        "ready": pod.is_ready,
        **{name: getattr(pod, name) for name in ("restarts", "last_exit")},
        "age_s": round(pod.age_s),
        **{name: getattr(pod.reading, name) for name in ("streams", "steps_per_second")},
    }
