"""Puts together what the API server and the pods say."""

import datetime
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kubebeast_learner.observe.fleet.api_objects import COMPONENT_SELECTOR, RELEASE_LABEL, group_state, pod_state
from kubebeast_learner.observe.fleet.cluster import Cluster
from kubebeast_learner.observe.fleet.errors import WatchError
from kubebeast_learner.observe.fleet.pod_metrics import Scraper
from kubebeast_learner.observe.fleet.state import FleetState, GroupState, PodState

RATE_WINDOW_S = 1.0
"""Time between the two rounds of scrapes of a first observation."""


def list_groups(cluster: Cluster, release: str) -> list[GroupState]:
    """The groups of a release, "" for all, without their pods. WatchError names a namespace or release that is not."""
    groups = [group_state(item) for item in cluster.deployments(COMPONENT_SELECTOR.format(component="envserver"))]
    if not groups:
        cluster.require_namespace()
    chosen = [group for group in groups if release in ("", group.release)]
    if groups and not chosen:
        known = ", ".join(sorted({group.release for group in groups}))
        raise WatchError(f"release = {release!r}: namespace {cluster.namespace} has env-servers of {known}")
    return sorted(chosen, key=lambda group: (group.release, group.group, group.deployment))


def list_pods(cluster: Cluster, selector: str) -> tuple[PodState, ...]:
    """The pods that a selector means, by name. Raises WatchError."""
    items = cluster.pods(selector)
    now = datetime.datetime.now(datetime.UTC)
    return tuple(sorted((pod_state(item, now) for item in items), key=lambda pod: pod.name))


class Observer:
    """Observes again and again; rates are over the time since the last observation."""

    def __init__(self, cluster: Cluster, release: str) -> None:
        self._cluster = cluster
        self._release = release
        self._scraper = Scraper(partial(cluster.page, path="metrics"))
        self._is_first = True

    def observe(self) -> FleetState:
        """Blocks for a few requests and one round of scrapes; the first time for two. Raises WatchError."""
        groups = [
            replace(group, pods=list_pods(self._cluster, group.selector))
            for group in list_groups(self._cluster, self._release)
        ]
        selector = COMPONENT_SELECTOR.format(component="learner")
        selector += f",{RELEASE_LABEL}={self._release}" if self._release else ""
        learners = [learner for pod in list_pods(self._cluster, selector) for learner in pod.learners()]
        notes = self._scrape([*learners, *(pod for group in groups for pod in group.pods)])
        if not groups:
            of_release = f" of release {self._release}" if self._release else ""
            notes = [*notes, f"namespace {self._cluster.namespace} has no env-servers{of_release}"]
        return FleetState(
            namespace=self._cluster.namespace,
            learners=self._read(learners),
            groups=[replace(group, pods=self._read(group.pods)) for group in groups],
            notes=notes,
        )

    def _scrape(self, pods: Sequence[PodState]) -> list[str]:
        """Leaves two rounds in the scraper; returns why they are incomplete."""
        started_at_s = time.monotonic()
        self._scraper.scrape(pods)
        notes = self._scraper.notes()
        answering = [pod for pod in pods if self._scraper.has_seen(pod)]
        if self._is_first and answering:
            time.sleep(max(0.0, RATE_WINDOW_S - (time.monotonic() - started_at_s)))
            self._scraper.scrape(answering)  # who was silent would only be waited for again
            notes += self._scraper.notes()
        self._is_first = False
        return notes

    def _read(self, pods: Sequence[PodState]) -> tuple[PodState, ...]:
        return tuple(replace(pod, reading=self._scraper.reading(pod)) for pod in pods)
