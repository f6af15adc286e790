"""A learner in Kubernetes: its pages through the API server, and the pods of its env-servers."""

import datetime
import time
from collections.abc import Mapping

from kubebeast_learner.config import TopConfig
from kubebeast_learner.fleet.api_objects import COMPONENT_SELECTOR, pod_state
from kubebeast_learner.fleet.cluster import Cluster
from kubebeast_learner.fleet.connection import connect
from kubebeast_learner.fleet.errors import FleetError, UnavailableError
from kubebeast_learner.fleet.state import PodState

PODS_INTERVAL_S = 5.0
"""How long a list of pods is good for."""


class ClusterSource:
    """The learner of a release, wherever its pod is. For one thread."""

    def __init__(self, config: TopConfig) -> None:
        """Asks the API server nothing yet. FleetError when there are no credentials that can be used."""
        self._cluster = Cluster(connect(config))
        self._release = config.release
        self._learner: PodState | None = None
        self._pods: Mapping[str, PodState] = {}
        self._listed_at_s = -PODS_INTERVAL_S
        self.name = f"namespace {self._cluster.namespace}"

    def page(self, path: str) -> str:
        self._list()
        assert self._learner is not None
        if self._learner.metrics_port is None:
            raise UnavailableError(f"learner {self._learner.name} serves no metrics, it is {self._learner.status}")
        return self._cluster.page(self._learner.name, self._learner.metrics_port, path)

    def pods(self) -> Mapping[str, PodState]:
        self._list()
        return self._pods

    def _list(self) -> None:
        """Lists pods again when the last list is old."""
        now_s = time.monotonic()
        if now_s - self._listed_at_s < PODS_INTERVAL_S:
            return
        learners = self._pods_of("learner")
        if not learners:
            self._cluster.require_namespace()
        chosen = [pod for pod in learners if self._release in ("", pod.release)]
        releases = ", ".join(sorted({pod.release for pod in learners}))
        where = f"namespace {self._cluster.namespace} has"
        if not chosen:
            has = f"learners of {releases}" if learners else "no learner"
            raise FleetError(f"release = {self._release!r}: {where} {has}" if self._release else f"{where} {has}")
        if len({pod.release for pod in chosen}) > 1:
            raise FleetError(f"{where} learners of {releases}: name one with --release")
        # Where one goes and its successor comes, the one that serves.
        self._learner = min(chosen, key=lambda pod: (pod.metrics_port is None, not pod.is_ready, pod.age_s))
        env_servers = self._pods_of("envserver")
        self._pods = {pod.name: pod for pod in env_servers if pod.release == self._learner.release}
        self.name = f"{self._learner.name} in namespace {self._cluster.namespace}"
        self._listed_at_s = now_s

    def _pods_of(self, component: str) -> list[PodState]:
        now = datetime.datetime.now(datetime.UTC)
        return [pod_state(item, now) for item in self._cluster.pods(COMPONENT_SELECTOR.format(component=component))]
