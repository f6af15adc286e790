"""State of a fleet at one moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubebeast_observe.numbers import total

LEARNER_VALUES = "rank", "step", "total_steps", "free_bytes"
"""Fields of Reading that --json adds for a learner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Values from a pod's metrics; None if they are unknown."""

    streams: int | None = None
    """Streams of a learner, or of an env-server those that a learner has welcomed."""
    steps_per_second: float | None = None
    """Env-steps, over the time between two scrapes."""
    step: int | None = None
    """Env-steps that a learner has trained on."""
    total_steps: int | None = None
    free_bytes: int | None = None
    """Free bytes on the volume of a learner's run."""
    rank: str = ""
    """Rank of a learner among several; "" for a single one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodState:
    name: str
    uid: str
    release: str
    """The Helm release; "" without one."""
    node: str
    """Name of the node; "" until the pod is scheduled."""
    status: str
    """Reason why it does not run (CrashLoopBackOff, ImagePullBackOff, Unschedulable ...), or its phase."""
    has_ended: bool = False
    """True if its containers have ended and are not started again."""
    is_ready: bool
    restarts: int
    """Restarts of all its containers."""
    last_exit: str
    """Newest end of one of its containers: OOMKilled, exit 3 ...; "" if none has ended."""
    age_s: float
    metrics_port: int | None
    """Port of a running container that serves /metrics; None if there is none."""
    further_metrics_ports: tuple[int, ...] = ()
    """Metrics ports of further learners in the pod."""
    problem: str = ""
    """Reason why it does not run; "" if there is none or it is unknown."""
    claims: tuple[str, ...] = ()
    """Names of the persistent volume claims that it mounts."""
    reading: Reading = Reading()

    def learners(self) -> Iterator["PodState"]:
        """Yields the pod once for each learner in it, with that learner's port."""
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
    """Selector of its pods, in the syntax of label selectors."""
    problem: str = ""
    """Reason why its pods are not created; "" if there is none."""
    pods: tuple[PodState, ...] = ()

    @property
    def restarts(self) -> int:
        return sum(pod.restarts for pod in self.pods)

    @property
    def streams(self) -> int | None:
        """Streams of the pods with a reading; None if there are none."""
        return total(pod.reading.streams for pod in self.pods)

    @property
    def steps_per_second(self) -> float | None:
        """Env-steps per second of the pods with a reading; None if there are none."""
        return total(pod.reading.steps_per_second for pod in self.pods)


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerSet:
    """The StatefulSet or the Job of a release's learner, or of its peers."""

    kind: str = "StatefulSet"
    name: str
    release: str
    desired: int
    """Desired pods; 0 while the release is paused, and if a Job has ended or waits in a queue."""
    current: int
    """Pods that exist."""
    queue: str = ""
    """Queue in which a Job waits; "" if it does not."""
    is_complete: bool = False
    """True if a Job has succeeded."""
    failure: str = ""
    """Reason why a Job has failed; "" if it has not."""
    is_of_run: bool = False
    """True for the Job of a run of a sweep."""

    @property
    def has_ended(self) -> bool:
        return self.is_complete or self.failure != ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetState:
    namespace: str
    learners: Sequence[PodState]
    groups: Sequence[GroupState]
    notes: Sequence[str] = ()
    """Missing parts of the state, with the reasons, and troubles of the fleet."""

    @property
    def num_releases(self) -> int:
        return len({pod.release for pod in self.learners} | {group.release for group in self.groups})


def as_json(state: FleetState) -> dict[str, Any]:
    """Returns the output of --json: namespace, notes, and two lists; null for an unknown value.

    pods: pod, release, node, status, problem, ready, restarts, last_exit, age_s, streams, steps_per_second.
    learners: the keys of pods, and rank, step, total_steps and free_bytes (on the run's volume), for each learner; a
    pod may have several.
    groups: group, release, deployment, desired, ready, problem, restarts, streams, steps_per_second, pods.
    """
    names = ("group", "release", "deployment", "desired", "ready", "problem", "restarts", "streams", "steps_per_second")
    return {
        "namespace": state.namespace,
        "learners": [
            _pod(pod) | {name: getattr(pod.reading, name) for name in LEARNER_VALUES} for pod in state.learners
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
        **{name: getattr(pod, name) for name in ("release", "node", "status", "problem")},
        "ready": pod.is_ready,
        **{name: getattr(pod, name) for name in ("restarts", "last_exit")},
        "age_s": round(pod.age_s),
        **{name: getattr(pod.reading, name) for name in ("streams", "steps_per_second")},
    }
