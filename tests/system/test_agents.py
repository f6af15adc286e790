"""With several agents in one environment, each step of each is trained on once, whichever ends or fails first."""

from pathlib import Path

import pytest

from harness.chaos import serial_env
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_protos.v1 import ABSENT_MINOR, PROTOCOL_VERSION
from tests.system import environments
from tests.system.environments import ENOUGH
from tests.system.halves import Halves
from tests.system.squad import NUM_MEMBERS, SQUAD
from tests.system.test_one_machine import assert_books_are_right, both, local_training

NUM_AGENTS = 2 * NUM_MEMBERS


@pytest.mark.parametrize("frames", ["halves", "stacked_halves"])
@pytest.mark.parametrize("fault", ["", "step raises", "reset raises"])
def test_every_step_of_every_agent_is_trained_on(request: pytest.FixtureRequest, fault: str, frames: str) -> None:
    halves: Halves = request.getfixturevalue(frames)
    with halves.nobody_else_suffers(), halves.host(env=SQUAD, fault=fault, num_envs=NUM_AGENTS) as host:
        halves.wait_until(lambda: all_have_played(host.replacements() if fault else host.decisions()), host)
        metrics, failures = host.metrics(), host.failures()
        assert host.terminate() == 0
        halves.wait_until(lambda: halves.delivered(host) == sum(host.decisions().values()))
    assert failures == ({"exception": 1} if fault else {})
    assert metrics["connects_total/welcomed"] == 1 and metrics["connects_total/lost"] == 0


def all_have_played(decisions: dict[int, int]) -> bool:
    return len(decisions) >= NUM_MEMBERS and min(decisions.values()) > ENOUGH


def test_agents_that_may_be_absent_are_not_played_to_an_older_learner(halves: Halves) -> None:
    older = PROTOCOL_VERSION, ABSENT_MINOR - 1
    with halves.nobody_else_suffers(), halves.host(env=SQUAD, num_envs=NUM_AGENTS, version=older) as host:
        assert host.wait() == ExitCode.REFUSED
    assert host.says("update the learner") and not any(host.decisions().values())


@both
def test_a_training_whose_agents_fail_goes_on(tmp_path: Path, command: str) -> None:
    variables = {environments.FAULT: "step raises"}
    with local_training(tmp_path, command, variables, f"--env={SQUAD}", NUM_AGENTS) as run:
        run.wait_until(lambda _: the_failed_are_back(tmp_path))
        assert run.terminate() == 0
    assert_books_are_right(run)


def the_failed_are_back(folder: Path) -> bool:
    accounts = serial_env.accounts(folder)
    return int((accounts["decisions"][accounts["place"] >= NUM_AGENTS] > ENOUGH).sum()) >= NUM_MEMBERS


@both
def test_agents_that_are_no_whole_environments_are_refused_by_number(tmp_path: Path, command: str) -> None:
    with local_training(tmp_path, command, {}, f"--env={SQUAD}", NUM_AGENTS + 1) as run:
        assert run.wait() in (1, 2)
    assert f"= {NUM_AGENTS + 1}: counts agents" in run.log() and "Traceback" not in run.log()
