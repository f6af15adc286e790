"""A Deployment requests the right number of env-servers after each command that may change it. Its pods never run."""

import json
import secrets
from typing import Any

import pytest

from tests.e2e.cluster import Namespace, run
from tests.e2e.release import CHART

SERVER_SIDE, CLIENT_SIDE = "true", "false"
"""Methods by which helm applies a manifest: on the server, the default of Helm 4, and by three-way merge, the only one
of Helm 3.
"""
HPA = {"autoscaling": {"minReplicas": 2, "hpa": {"enabled": True}}}


class Fleet:
    """A release of the chart of which only the number of env-servers matters: 3 at first."""

    def __init__(self, namespace: Namespace, server_side: str = CLIENT_SIDE) -> None:
        self.namespace = namespace
        self.name = f"fleet-{secrets.token_hex(3)}"
        self._applies = f"--server-side={server_side}"
        self._force = ("--force-conflicts",) if server_side == SERVER_SIDE else ()

    def upgrade(self, *, force: bool = False, **values: Any) -> int:
        """Runs `helm upgrade --install`. Returns the replicas afterwards, as all methods. force: take fields from
        others.
        """
        flags = self._force if force else ()
        self._helm("upgrade", "--install", self.name, str(CHART), *flags, "--values=-", stdin=nowhere(values))
        return self.replicas()

    def rollback(self, revision: int, *, force: bool = False) -> int:
        self._helm("rollback", self.name, str(revision), *(self._force if force else ()))
        return self.replicas()

    def apply(self, **values: Any) -> int:
        """Renders without the cluster, and applies, as Argo CD does."""
        where = (self.name, str(CHART), "--namespace", self.namespace.name, "--kube-version=1.20.0")
        manifests = run("helm", "template", *where, "--no-hooks", "--values=-", stdin=nowhere(values))
        self.namespace.kubectl("apply", "--filename=-", stdin=manifests)
        return self.replicas()

    def scale(self, replicas: int) -> int:
        self.namespace.kubectl("scale", f"deployment/{self.name}-envserver", f"--replicas={replicas}")
        return self.replicas()

    def replicas(self) -> int:
        return int(self._deployment()["spec"]["replicas"])

    def strategy(self) -> str:
        return str(self._deployment()["spec"]["strategy"]["type"])

    def _deployment(self) -> dict[str, Any]:
        return self.namespace.get("deployment", f"{self.name}-envserver")

    def _helm(self, command: str, *arguments: str, stdin: str = "") -> None:
        run("helm", command, "--namespace", self.namespace.name, self._applies, *arguments, stdin=stdin)


def nowhere(values: dict[str, Any]) -> str:
    """Returns the values of a fleet that fits on no node, as JSON; `values` are those of the release."""
    no_node = {"kubebeast-e2e": "nowhere"}
    defaults = {"replicas": 3, "nodeSelector": no_node} | values.get("envserverDefaults", {})
    learner = {"nodeSelector": no_node, "persistence": {"enabled": False}} | values.get("learner", {})
    image = {"registry": "localhost"}
    return json.dumps(values | {"image": image, "envserverDefaults": defaults, "learner": learner})


@pytest.fixture(params=[SERVER_SIDE, CLIENT_SIDE], ids=["server-side", "three-way"])
def fleet(namespace: Namespace, request: pytest.FixtureRequest) -> Fleet:
    """A fleet of three; as every fleet here it goes with its namespace."""
    fleet = Fleet(namespace, request.param)
    assert fleet.upgrade() == 3
    return fleet


@pytest.fixture
def applied(namespace: Namespace) -> Fleet:
    """A fleet that does not exist yet."""
    return Fleet(namespace)


def test_an_upgrade_keeps_the_number_that_kubectl_has_set(fleet: Fleet) -> None:
    fleet.scale(5)

    assert fleet.upgrade(learner={"config": {"seed": 2}}) == 5


def test_an_upgrade_with_another_number_sets_it(fleet: Fleet) -> None:
    fleet.scale(5)

    assert fleet.upgrade(force=True, envserverDefaults={"replicas": 4}) == 4


def test_a_rollback_goes_back_to_the_number_of_that_revision(fleet: Fleet) -> None:
    fleet.scale(5)
    fleet.upgrade(learner={"config": {"seed": 2}})
    fleet.scale(6)

    assert fleet.rollback(2, force=True) == 5
    assert fleet.rollback(1, force=True) == 3


def test_an_autoscaler_takes_over_the_fleet_as_it_is_and_leaves_it_so(fleet: Fleet) -> None:
    fleet.scale(5)

    assert fleet.upgrade(envserverDefaults=HPA) == 5
    fleet.scale(7)  # as the autoscaler does
    assert fleet.upgrade(envserverDefaults=HPA, learner={"config": {"seed": 2}}) == 7
    assert fleet.upgrade() == 7


def test_a_fleet_that_others_scale_from_the_beginning_is_touched_by_no_command(namespace: Namespace) -> None:
    others = {"scaledByOthers": True}
    for server_side in (SERVER_SIDE, CLIENT_SIDE):
        fleet = Fleet(namespace, server_side)
        assert fleet.upgrade(envserverDefaults=others) == 1
        fleet.scale(5)
        assert fleet.upgrade(envserverDefaults=others, learner={"config": {"seed": 2}}) == 5
        assert fleet.rollback(1) == 5
        fleet.scale(6)
        assert fleet.upgrade(envserverDefaults=HPA) == 6
        assert fleet.upgrade() == 6


def test_a_paused_fleet_has_no_pods_and_comes_back_in_its_first_size(fleet: Fleet) -> None:
    fleet.scale(5)

    assert fleet.upgrade(force=True, paused=True) == 0
    assert fleet.upgrade(paused=True, learner={"config": {"seed": 2}}) == 0
    assert fleet.upgrade() == 3


def test_a_paused_autoscaled_fleet_comes_back_large_enough_for_its_autoscaler(fleet: Fleet) -> None:
    """With no pods a HorizontalPodAutoscaler would do nothing."""
    assert fleet.upgrade(envserverDefaults=HPA) == 3
    assert fleet.upgrade(envserverDefaults=HPA, paused=True) == 0
    assert fleet.upgrade(envserverDefaults=HPA) == 2


def test_rendered_manifests_know_the_value_only(applied: Fleet) -> None:
    """With an autoscaler they have no number: the Deployment has one env-server, its default, until the autoscaler sees
    it and raises it to its minimum of two.
    """
    assert applied.apply() == 3
    applied.scale(5)
    assert applied.apply() == 3
    applied.scale(5)
    assert applied.apply(envserverDefaults=HPA) in (1, 2)
    assert applied.apply(paused=True) == 0
    assert applied.apply(envserverDefaults=HPA) in (1, 2)


def test_rendered_manifests_leave_a_fleet_alone_that_others_scale(applied: Fleet) -> None:
    others = {"scaledByOthers": True}
    assert applied.apply(envserverDefaults=others) == 1
    applied.scale(5)
    assert applied.apply(envserverDefaults=others) == 5
    assert applied.apply(envserverDefaults=HPA) == 5


def test_a_rolling_fleet_can_be_told_to_stop_before_it_starts_anew(fleet: Fleet) -> None:
    """Kubernetes refuses Recreate beside the rollingUpdate that its own defaults have put there."""
    assert fleet.strategy() == "RollingUpdate"
    fleet.upgrade(envserverDefaults={"strategy": {"type": "Recreate"}})
    assert fleet.strategy() == "Recreate"
    fleet.upgrade()
    assert fleet.strategy() == "RollingUpdate"
