"""A learner in Kubernetes: its pages through the API server, and the pods of its env-servers."""

import contextlib
import time
from collections.abc import Mapping, Sequence

from kubebeast_learner.config import TopConfig
from kubebeast_learner.observe.fleet.api_objects import COMPONENT_SELECTOR
from kubebeast_learner.observe.fleet.connection import connect
from kubebeast_learner.observe.fleet.errors import UnavailableError, WatchError
from kubebeast_learner.observe.fleet.observer import list_groups, list_pods
from kubebeast_learner.observe.fleet.state import GroupState, PodState

PODS_INTERVAL_S = 5.0
"""How long a list of pods is good for."""


class ClusterSource:
    """The learner of a release, wherever its pod is. For one thread."""

    def __init__(self, config: TopConfig) -> None:
        """Asks the API server nothing yet. WatchError when there are no credentials that can be used."""
        self._cluster = connect(config)
        self._release = config.release
        self._learner: PodState | None = None
        self._pods: Mapping[str, PodState] = {}
        self._groups: Sequence[GroupState] = ()
        self._listed_at_s = -PODS_INTERVAL_S
        self.name = f"namespace {self._cluster.namespace}"

    def page(self, path: str) -> str:
        self._list()
        assert self._learner is not None
        if self._learner.metrics_port is None:
            raise UnavailableError(f"learner {self._learner.name} serves no metrics, it is {self._learner.status}")
        return self._cluster.page(self._learner.name, self._learner.metrics_port, path)

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        self._list()
        return self._pods, self._groups

    def _list(self) -> None:
        """Lists pods again when the last list is old."""
        now_s = time.monotonic()
        if now_s - self._listed_at_s < PODS_INTERVAL_S:
            return
        learners = list_pods(self._cluster, COMPONENT_SELECTOR.format(component="learner"))
        if not learners:
            self._cluster.require_namespace()
        chosen = [pod for pod in learners if self._release in ("", pod.release)]
        releases = ", ".join(sorted({pod.release for pod in learners}))
        where = f"namespace {self._cluster.namespace} has"
        if not chosen:
            has = f"learners of {releases}" if learners else "no learner"
            raise WatchError(f"release = {self._release!r}: {where} {has}" if self._release else f"{where} {has}")
        if len({pod.release for pod in chosen}) > 1:
            raise WatchError(f"{where} learners of {releases}: name one with --release")
        # Where one goes and its successor comes, the one that serves.
        self._learner = min(chosen, key=lambda pod: (pod.metrics_port is None, not pod.is_ready, pod.age_s))
        release = self._learner.release
        env_servers = list_pods(self._cluster, COMPONENT_SELECTOR.format(component="envserver"))
        self._pods = {pod.name: pod for pod in env_servers if pod.release == release}
        self._groups = ()
        with contextlib.suppress(WatchError):  # who may look at pods need not be allowed to see what makes them
            self._groups = [group for group in list_groups(self._cluster, "") if group.release == release]
        self.name = f"{self._learner.name} in namespace {self._cluster.namespace}"
        self._listed_at_s = now_s
