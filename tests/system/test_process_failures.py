"""Processes of env-servers that die, hang or are killed are replaced; environments that fail too often are given up."""

import pytest

from kubebeast_envserver.stream.exit_code import ExitCode
from tests.system.environments import DEATHS, ENOUGH, FAILS_AT
from tests.system.halves import STEP_TIMEOUT_S, Halves
from tests.system.host import Host

BRISK = "--env-timeout-s=3"

both_directions = pytest.mark.parametrize("listens", [False, True], ids=["env-server dials", "learner dials"])


def replacements_play(host: Host) -> bool:
    """Returns True if as many replacements play as there were environments before the first failure."""
    return len(host.replacements()) == host.num_envs and min(host.replacements().values()) > ENOUGH


@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize("fault", DEATHS)
def test_a_stream_whose_process_dies_or_hangs_is_replaced(halves: Halves, fault: str, num_envs: int) -> None:
    kind, _, _, says = DEATHS[fault]
    with halves.nobody_else_suffers(), halves.host(BRISK, fault=fault, num_envs=num_envs) as host:
        supervisor = host.pid
        halves.wait_until(lambda: replacements_play(host), host)
        metrics, failures = host.metrics(), host.failures()
        assert host.pid == supervisor and host.terminate() == 0
        # Only the step in progress of every environment may be lost.
        halves.wait_until(lambda: 0 <= sum(host.decisions().values()) - halves.delivered(host) <= num_envs)

    assert failures == {kind: 1}
    assert metrics["stream_restarts_total"] == 1
    assert metrics["connects_total/welcomed"] == 2
    assert host.says(says)
    assert kind != "hang" or [line for line in host.stray_lines() if "environments.py" in line]


@both_directions
def test_a_stream_whose_process_dies_is_replaced_in_both_directions(halves: Halves, listens: bool) -> None:
    with (
        halves.nobody_else_suffers(),
        halves.host(fault="killed for memory", num_envs=2, listens=listens) as host,
    ):
        halves.wait_until(lambda: replacements_play(host), host)
        assert host.terminate() == 0


def test_the_learner_ends_a_stream_that_hangs_and_takes_it_again_once_it_was_replaced(halves: Halves) -> None:
    timeout_s = STEP_TIMEOUT_S + 3
    before = halves.metrics()["streams_ended_total/timeout"]
    with (
        halves.nobody_else_suffers(),
        halves.host(f"--env-timeout-s={timeout_s}", fault="step hangs", num_envs=2) as host,
    ):
        halves.wait_until(lambda: halves.metrics()["streams_ended_total/timeout"] == before + 1, host)
        assert not host.says("computed for more than") and host.decisions()[0] == FAILS_AT
        halves.wait_until(lambda: replacements_play(host), host)
        assert host.terminate() == 0


@both_directions
def test_an_env_server_that_is_killed_costs_the_step_under_way(halves: Halves, listens: bool) -> None:
    before = halves.metrics()["streams_ended_total/disconnect"]
    with halves.nobody_else_suffers(), halves.host(num_envs=4, listens=listens) as host:
        halves.wait_until(lambda: sum(host.decisions().values()) > ENOUGH * 4, host)
        host.kill()
        halves.wait_until(lambda: 0 <= sum(host.decisions().values()) - halves.delivered(host) <= 4)
        assert halves.metrics()["streams_ended_total/disconnect"] == before + 1
        host.start()
        halves.wait_until(lambda: len(host.replacements()) == 4, host)


@both_directions
def test_an_env_server_that_is_told_to_end_loses_nothing(halves: Halves, listens: bool) -> None:
    before = halves.metrics()["streams_ended_total/bye"]
    with halves.nobody_else_suffers(), halves.host(num_envs=4, listens=listens) as host:
        halves.wait_until(lambda: sum(host.decisions().values()) > ENOUGH * 4, host)
        assert host.terminate() == 0
        halves.wait_until(lambda: halves.delivered(host) == sum(host.decisions().values()))
        assert halves.metrics()["streams_ended_total/bye"] == before + 1
    assert host.stray_lines() == []


def test_an_environment_that_fails_too_often_is_given_up_and_returns_with_its_process(halves: Halves) -> None:
    with (
        halves.nobody_else_suffers(),
        halves.host("--max-failures=2", fault="step raises", again=1, num_envs=8) as host,
    ):
        halves.wait_until(lambda: host.metrics().get("envs_quarantined") == 1, host)
        before = host.decisions()
        assert host.says("environment 0 is given up") and before[8] == FAILS_AT
        halves.wait_until(lambda: all(host.decisions()[env] > before[env] + ENOUGH for env in range(1, 8)), host)
        assert max(host.decisions()) == 8
        assert host.failures() == {"exception": 2}

        host.kill_stream()
        halves.wait_until(lambda: len(host.decisions()) == 17 and host.decisions()[9] > ENOUGH, host)
        assert host.metrics()["envs_quarantined"] == 0
        assert host.terminate() == 0


@pytest.mark.parametrize("fault", ["step raises", "killed for memory"])
def test_an_env_server_of_which_nothing_is_left_ends_with_an_error(halves: Halves, fault: str) -> None:
    with (
        halves.nobody_else_suffers(),
        halves.host("--max-failures=2", fault=fault, again=99, num_envs=1) as host,
    ):
        assert host.wait() == ExitCode.FAILED
    assert host.says("stream 0 is given up")
