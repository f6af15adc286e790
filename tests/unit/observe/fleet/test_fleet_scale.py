"""Scaling finds the group, and reports other controllers of its size."""

import pytest

from kubebeast_observe.errors import WatchError
from kubebeast_observe.fleet.api_objects import group_state
from kubebeast_observe.fleet.scale import autoscaler_of, find_group
from tests.unit.observe.fleet.fleet_objects import autoscaler, deployment

GROUPS = [
    group_state(deployment(name, group, release))
    for name, group, release in (("a-atari", "atari", "a"), ("b-atari", "atari", "b"), ("b-control", "control", "b"))
]


@pytest.mark.parametrize(("name", "expected"), [("control", "b-control"), ("a-atari", "a-atari")])
def test_a_group_is_found_by_its_name_and_by_its_deployment(name: str, expected: str) -> None:
    assert find_group(GROUPS, name, "ns").deployment == expected


def test_an_unknown_group_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        WatchError, match=r"group = 'chess': .* ns: atari \(Deployment a-atari of release a\), .*control"
    ):
        find_group(GROUPS, "chess", "ns")
    with pytest.raises(WatchError, match=r"group = 'chess': .*: none"):
        find_group([], "chess", "ns")


def test_a_group_of_two_releases_is_refused_with_both() -> None:
    with pytest.raises(WatchError, match=r"a-atari of release a\) and .*b-atari of release b\); give --release"):
        find_group(GROUPS, "atari", "ns")


def test_an_autoscaler_of_the_deployment_is_named_with_its_bounds() -> None:
    others = [autoscaler("other", "b-atari")]
    assert autoscaler_of("a-atari", others) == ""
    found = autoscaler_of("a-atari", [*others, autoscaler("mine", "a-atari")])
    assert found == "HorizontalPodAutoscaler mine (1 to 16 replicas)"


def test_the_owner_of_an_autoscaler_is_named_instead() -> None:
    owner = {"kind": "ScaledObject", "name": "atari"}
    found = autoscaler_of("a-atari", [autoscaler("keda-hpa-atari", "a-atari", ownerReferences=[owner])])
    assert found == "ScaledObject atari (1 to 16 replicas)"
