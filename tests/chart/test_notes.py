"""What `helm install` tells: commands with the names of this release, and what is risky about its values."""

from typing import Any

import pytest

from tests.chart.chart import notes

OPEN = {"learner": {"service": {"type": "LoadBalancer"}}}


def test_the_next_commands_should_have_the_real_names() -> None:
    text = notes({"fullnameOverride": "pong"})

    assert "kubectl -n training logs -f statefulset/pong-learner" in text
    assert "kubectl -n training scale deployment/pong-envserver --replicas=64" in text
    assert "kubectl -n training port-forward service/pong-learner 9090:9090" in text
    assert "kubebeast fleet -n training --release demo" in text
    assert "WARNING" not in text


def test_an_autoscaled_group_should_not_be_scaled_by_hand() -> None:
    text = notes({"envserverDefaults": {"autoscaling": {"hpa": {"enabled": True}}}})

    assert "scale deployment" not in text
    assert "demo-envserver: autoscaled from 1 to 64" in text


def test_a_run_that_can_be_lost_should_be_warned_of() -> None:
    assert "WARNING: learner.persistence.enabled" in notes({"learner": {"persistence": {"enabled": False}}})


@pytest.mark.parametrize(
    ("locks", "missing"),
    [
        ({}, "without tls.enabled and token.enabled:"),
        ({"token": {"enabled": True, "value": "a"}}, "without tls.enabled:"),
        ({"tls": {"enabled": True, "existingSecret": "a"}}, "without token.enabled:"),
    ],
)
def test_an_open_door_should_be_warned_of(locks: dict[str, Any], missing: str) -> None:
    assert missing in notes({**OPEN, **locks})


def test_a_locked_door_should_not_be_warned_of() -> None:
    locks = {"token": {"enabled": True, "value": "a"}, "tls": {"enabled": True, "existingSecret": "a"}}

    assert "WARNING" not in notes({**OPEN, **locks})
