"""Observation of a fleet through the API server and the metrics of its pods."""

import contextlib
import datetime
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kubebeast_observe.errors import WatchError
from kubebeast_observe.fleet.api_objects import COMPONENT_SELECTOR, group_state, learner_job, learner_set, pod_state
from kubebeast_observe.fleet.cluster import Cluster
from kubebeast_observe.fleet.pod_metrics import Scraper
from kubebeast_observe.fleet.state import FleetState, GroupState, LearnerSet, PodState
from kubebeast_observe.fleet.troubles import rest_note, trouble_notes

EVALUATORS = ("evaluator", "named-evaluator")
"""Components of evaluators without and with a name."""
RATE_WINDOW_S = 1.0
"""Time between the two rounds of scrapes of a first observation."""


def list_groups(cluster: Cluster, release: str) -> list[GroupState]:
    """Returns the groups of a release, or of all if it is "", without their pods.

    Raises WatchError if the namespace does not exist, or has env-servers of other releases only.
    """
    groups = [group_state(item) for item in cluster.deployments(COMPONENT_SELECTOR.format(component="envserver"))]
    if not groups:
        cluster.require_namespace()
    chosen = [group for group in groups if release in ("", group.release)]
    if groups and not chosen:
        known = ", ".join(sorted({group.release for group in groups}))
        raise WatchError(f"release = {release!r}: namespace {cluster.namespace} has env-servers of {known}")
    return sorted(chosen, key=lambda group: (group.release, group.group, group.deployment))


def list_evaluators(cluster: Cluster, release: str) -> list[GroupState]:
    """Returns the evaluators of a release, "" for all, without their pods. Raises WatchError."""
    selectors = (COMPONENT_SELECTOR.format(component=component) for component in EVALUATORS)
    deployments = [item for selector in selectors for item in cluster.deployments(selector)]
    return [one for one in map(group_state, deployments) if release in ("", one.release)]


def list_learner_sets(cluster: Cluster, release: str) -> list[LearnerSet]:
    """Returns the StatefulSets and Jobs of a release's learners, "" for all, as far as they are readable: older Roles
    refuse some. A sweep is over with its own Job, not with those of its runs.
    """
    sets: list[LearnerSet] = []
    sources = (
        (cluster.stateful_sets, learner_set, "learner"),
        (cluster.jobs, learner_job, "learner"),
        (cluster.jobs, learner_job, "sweep"),
    )
    for list_items, read, component in sources:
        with contextlib.suppress(WatchError):
            items = list_items(COMPONENT_SELECTOR.format(component=component))
            present = [item for item in items if "deletionTimestamp" not in item["metadata"]]
            sets += [one for one in map(read, present) if not (one.is_of_run and one.has_ended)]
    return [one for one in sets if release in ("", one.release)]


def list_pods(cluster: Cluster, selector: str) -> tuple[PodState, ...]:
    """Returns the pods of a selector by name. Raises WatchError."""
    items = cluster.pods(selector)
    now = datetime.datetime.now(datetime.UTC)
    return tuple(sorted((pod_state(item, now) for item in items), key=lambda pod: pod.name))


def list_learners(cluster: Cluster) -> tuple[PodState, ...]:
    """Returns the pods of all learners by name, without those that have ended, which a Job keeps; of a release that has
    no others, the newest. Raises WatchError.
    """
    pods = list_pods(cluster, COMPONENT_SELECTOR.format(component="learner"))
    running = {pod.release for pod in pods if not pod.has_ended}
    newest = {pod.release: pod for pod in sorted(pods, key=lambda pod: -pod.age_s)}
    return tuple(
        pod for pod in pods if not pod.has_ended or (pod.release not in running and newest[pod.release] == pod)
    )


class Observer:
    """Repeated observations; rates are over the time since the last one."""

    def __init__(self, cluster: Cluster, release: str) -> None:
        self._cluster = cluster
        self._release = release
        self._scraper = Scraper(partial(cluster.page, path="metrics"))
        self._is_first = True

    def observe(self) -> FleetState:
        """Blocks for a few requests and one round of scrapes, two the first time. Raises WatchError."""
        groups = [replace(group, pods=self._pods_of(group)) for group in list_groups(self._cluster, self._release)]
        learner_pods = [pod for pod in list_learners(self._cluster) if self._release in ("", pod.release)]
        learners = [learner for pod in learner_pods for learner in pod.learners()]
        notes = self._scrape([*learners, *(pod for group in groups for pod in group.pods)])
        sets = list_learner_sets(self._cluster, self._release)
        evaluators = [replace(one, pods=self._pods_of(one)) for one in list_evaluators(self._cluster, self._release)]
        pods = [*learner_pods, *(pod for group in [*groups, *evaluators] for pod in group.pods)]
        notes += trouble_notes(self._cluster, sets, [*groups, *evaluators], pods)
        notes += filter(None, (rest_note(sets, release) for release in dict.fromkeys(one.release for one in sets)))
        if not groups:
            of_release = f" of release {self._release}" if self._release else ""
            notes = [*notes, f"namespace {self._cluster.namespace} has no env-servers{of_release}"]
        return FleetState(
            namespace=self._cluster.namespace,
            learners=self._read(learners),
            groups=[replace(group, pods=self._read(group.pods)) for group in groups],
            notes=notes,
        )

    def _pods_of(self, group: GroupState) -> tuple[PodState, ...]:
        """Returns the group's pods, without those of other releases that the selectors of older charts match, too."""
        return tuple(pod for pod in list_pods(self._cluster, group.selector) if pod.release == group.release)

    def _scrape(self, pods: Sequence[PodState]) -> list[str]:
        """Leaves two rounds in the scraper; returns the reasons why they are incomplete."""
        started_at_s = time.monotonic()
        self._scraper.scrape(pods)
        notes = self._scraper.notes()
        answering = [pod for pod in pods if self._scraper.has_seen(pod)]
        if self._is_first and answering:
            time.sleep(max(0.0, RATE_WINDOW_S - (time.monotonic() - started_at_s)))
            self._scraper.scrape(answering)  # silent pods would only be waited for again
            notes += self._scraper.notes()
        self._is_first = False
        return notes

    def _read(self, pods: Sequence[PodState]) -> tuple[PodState, ...]:
        return tuple(replace(pod, reading=self._scraper.reading(pod)) for pod in pods)
