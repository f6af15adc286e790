"""Source of a learner in Kubernetes: its pages through the API server, and the pods of its env-servers."""

import contextlib
import time
from collections.abc import Mapping, Sequence

from kubebeast_observe.errors import UnavailableError, WatchError
from kubebeast_observe.fleet.api_objects import COMPONENT_SELECTOR
from kubebeast_observe.fleet.connection import connect
from kubebeast_observe.fleet.observer import list_evaluators, list_groups, list_learner_sets, list_learners, list_pods
from kubebeast_observe.fleet.state import GroupState, PodState
from kubebeast_observe.fleet.troubles import rest_note, trouble_notes
from kubebeast_observe.settings import TopConfig

PODS_INTERVAL_S = 5.0
"""Time for which a list of pods is used."""


class ClusterSource:
    """The learner of a release, on any node. Not thread-safe."""

    def __init__(self, config: TopConfig) -> None:
        """Sends no request yet. Raises WatchError if there are no usable credentials."""
        self._cluster = connect(config)
        self._release = config.release
        self._learner: PodState | None = None
        self._pods: Mapping[str, PodState] = {}
        self._groups: Sequence[GroupState] = ()
        self._notes: Sequence[str] = ()
        self._listed_at_s = -PODS_INTERVAL_S
        self.name = f"namespace {self._cluster.namespace}"

    def page(self, path: str) -> str:
        self._list()
        assert self._learner is not None
        if self._learner.metrics_port is None:
            why = self._learner.problem or "; ".join(self._notes)
            text = f"learner {self._learner.name} serves no metrics, it is {self._learner.status}"
            raise UnavailableError(f"{text}: {why}" if why else text)
        try:
            return self._cluster.page(self._learner.name, self._learner.metrics_port, path)
        except UnavailableError as error:
            if not self._learner.problem:
                raise
            raise UnavailableError(f"learner {self._learner.name}: {self._learner.problem} ({error})") from error

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        self._list()
        return self._pods, self._groups

    def notes(self) -> Sequence[str]:
        self._list()
        return self._notes

    def _list(self) -> None:
        """Refreshes the list of pods if it is old."""
        now_s = time.monotonic()
        if now_s - self._listed_at_s < PODS_INTERVAL_S:
            return
        learners = list_learners(self._cluster)
        if not learners:
            self._cluster.require_namespace()
        chosen = [pod for pod in learners if self._release in ("", pod.release)]
        releases = ", ".join(sorted({pod.release for pod in learners}))
        where = f"namespace {self._cluster.namespace} has"
        if not chosen:
            has = f"learners of {releases}" if learners else "no learner"
            text = f"release = {self._release!r}: {where} {has}" if self._release else f"{where} {has}"
            raise WatchError(self._why_there_is_none(text))
        if len({pod.release for pod in chosen}) > 1:
            raise WatchError(f"{where} learners of {releases}: name one with --release")
        # While one pod replaces another, prefer the one that serves metrics.
        self._learner = min(chosen, key=lambda pod: (pod.metrics_port is None, not pod.is_ready, pod.age_s))
        release = self._learner.release
        env_servers = list_pods(self._cluster, COMPONENT_SELECTOR.format(component="envserver"))
        self._pods = {pod.name: pod for pod in env_servers if pod.release == release}
        self._groups, evaluators = (), []
        with contextlib.suppress(WatchError):  # a Role that allows pods need not allow Deployments
            self._groups = [group for group in list_groups(self._cluster, "") if group.release == release]
            evaluators = list_evaluators(self._cluster, release)
        sets = list_learner_sets(self._cluster, release)
        pods = [*chosen, *self._pods.values()]
        rest = filter(None, [rest_note(sets, release)])
        self._notes = [*rest, *trouble_notes(self._cluster, sets, [*self._groups, *evaluators], pods)]
        self.name = f"{self._learner.name} in namespace {self._cluster.namespace}"
        self._listed_at_s = now_s

    def _why_there_is_none(self, text: str) -> str:
        """Returns the reason why the release should have no learner, or the text and why its pod is not created."""
        sets = list_learner_sets(self._cluster, self._release)
        rests = [rest_note(sets, release) for release in dict.fromkeys(one.release for one in sets)]
        return "; ".join(filter(None, rests)) or "; ".join([text, *trouble_notes(self._cluster, sets, (), ())])
