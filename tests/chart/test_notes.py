"""`helm install` prints commands with the names of this release, and warns of risks of its values."""

from typing import Any

import pytest

from tests.chart.chart import notes

OPEN = {"learner": {"externalService": {"enabled": True}}}


def test_the_next_commands_should_have_the_real_names() -> None:
    text = notes({"fullnameOverride": "pong"})

    assert "kubectl -n training logs -f statefulset/pong-learner" in text
    assert "kubectl -n training scale deployment/pong-envserver --replicas=4" in text
    assert "kubectl -n training port-forward service/pong-learner 9090:9090" in text
    assert "kubebeast fleet -n training --release pong" in text
    assert "kubebeast top -n training --release pong" in text
    assert "helm test demo -n training" in text
    assert "WARNING" not in text
    assert "DEPRECATED" not in text


@pytest.mark.parametrize(("replicas", "suggested"), [(0, 1), (1, 2), (48, 96)])
def test_a_suggested_number_of_env_servers_should_fit_the_fleet(replicas: int, suggested: int) -> None:
    text = notes({"envservers": {"pong": {"env": "x", "replicas": replicas}}})

    assert f"scale deployment/demo-pong --replicas={suggested}\n" in text


def test_a_test_that_is_off_should_not_be_suggested() -> None:
    assert "helm test" not in notes({"test": {"enabled": False}})


def test_a_list_of_groups_should_be_told_to_become_a_map() -> None:
    assert "DEPRECATED: envservers is a list" in notes({"envservers": [{"name": "a", "env": "x"}]})


def test_a_paused_release_should_say_how_it_goes_on() -> None:
    text = notes({"paused": True})

    assert "Set paused=false to resume it" in text
    assert "kubectl" not in text


def test_env_servers_for_a_learner_elsewhere_should_be_said_to_be_that() -> None:
    text = notes({"learner": {"enabled": False, "address": "learner.example.com:4431"}})

    assert "1 group of env-servers for the learner at learner.example.com:4431" in text
    assert "demo-learner" not in text
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
