"""An environment that fails, in any way, is interrupted and created again, and all others continue."""

from pathlib import Path

import pytest

from kubebeast_envserver.stream.exit_code import ExitCode
from tests.system import shared_drive
from tests.system.environments import ENOUGH, FAILS_AT, FAULTS, NEVER_MADE
from tests.system.halves import Halves
from tests.system.host import Host


@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_environment_that_fails_is_made_anew_and_the_others_go_on(halves: Halves, fault: str, num_envs: int) -> None:
    kind, where, _, says = FAULTS[fault]
    num_failures = 2 if where == "constructor" else 1
    with halves.nobody_else_suffers(), halves.host(fault=fault, num_envs=num_envs) as host:
        halves.wait_until(lambda: host.failures() == {kind: num_failures}, host)
        before = host.decisions()
        halves.wait_until(lambda: plays_on(host, before), host)
        metrics, failures, decisions = host.metrics(), host.failures(), host.decisions()
        assert host.terminate() == 0

    assert failures == {kind: num_failures}
    assert metrics["connects_total/welcomed"] == 1 and metrics["connects_total/lost"] == 0
    assert metrics["stream_restarts_total"] == metrics["envs_quarantined"] == 0
    assert decisions[0] == {"first reset": 0, "step": FAILS_AT, "constructor": FAILS_AT}.get(where, decisions[0])
    (line, *more) = host.says("environment 0 failed")
    assert kind in line["message"] and says in host.log_path.read_text()
    assert host.stray_lines() == []
    assert ("traceback" in line) <= (kind == "exception") and len(more) == num_failures - 1


def plays_on(host: Host, before: dict[int, int]) -> bool:
    """Returns True if the replacement of the failed environment and all others have played enough since `before`."""
    now = host.decisions()
    others = range(1, host.num_envs)
    return sum(host.replacements().values()) > ENOUGH and all(
        now.get(env, 0) > before.get(env, 0) + ENOUGH for env in others
    )


def test_every_step_before_and_after_a_failure_is_trained_on(halves: Halves) -> None:
    with halves.nobody_else_suffers(), halves.host(fault="step raises", num_envs=4) as host:
        halves.wait_until(lambda: sum(host.replacements().values()) > ENOUGH, host)
        assert host.terminate() == 0
        halves.wait_until(lambda: halves.delivered(host) == sum(host.decisions().values()))


@pytest.mark.parametrize(
    ("env", "says"),
    [(NEVER_MADE, "no licence"), ("tests.system.nowhere:Scripted-v0", "nowhere"), ("NoSuchGame-v0", "NoSuchGame")],
    ids=["constructor raises", "no such module", "no such id"],
)
def test_an_env_server_whose_environment_cannot_be_made_says_why_and_ends(halves: Halves, env: str, says: str) -> None:
    with halves.nobody_else_suffers(), halves.host(env=env, num_envs=2) as host:
        assert host.wait() == ExitCode.USAGE
    assert [line for line in host.says(says) if line["level"] == "error"] and host.stray_lines() == []


def test_a_module_that_cannot_be_imported_for_a_while_is_imported_again(halves: Halves, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    variables = {shared_drive.GONE: str(gone)}
    with (
        halves.nobody_else_suffers(),
        halves.host(env=shared_drive.ENV_ID, num_envs=1, variables=variables) as host,
    ):
        halves.wait_until(lambda: sum(host.decisions().values()) > ENOUGH, host)
        gone.touch()
        host.kill_stream()
        halves.wait_until(lambda: bool(host.says("the drive is not mounted")), host)
        gone.unlink()
        halves.wait_until(lambda: sum(host.replacements().values()) > ENOUGH, host)
        assert host.terminate() == 0
