"""An env-server that the learner refuses receives the reason once and exits with status 3."""

from pathlib import Path

import pytest

from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_protos.v1 import PROTOCOL_VERSION
from tests.system.environments import SCRIPTED
from tests.system.halves import Halves


@pytest.mark.parametrize("listens", [False, True], ids=["env-server dials", "learner dials"])
@pytest.mark.parametrize(
    ("env", "major", "says"),
    [
        ("Acrobot-v1", PROTOCOL_VERSION, "FAILED_PRECONDITION: observation"),
        (SCRIPTED, PROTOCOL_VERSION + 1, "FAILED_PRECONDITION: hello.protocol_version"),
    ],
    ids=["shapes", "version"],
)
def test_an_env_server_that_does_not_fit_is_refused_once(
    halves: Halves, listens: bool, env: str, major: int, says: str
) -> None:
    with (
        halves.nobody_else_suffers(),
        halves.host(listens=listens, num_envs=2, env=env, version=(major, 0)) as host,
    ):
        assert host.wait() == ExitCode.REFUSED
    (line,) = host.says("refuses this env-server")
    assert says in line["message"] and line["level"] == "error"
    assert host.stray_lines() == []


def test_an_env_server_with_a_wrong_token_is_refused_once(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("correct-horse\n")
    wrong.write_text("battery-staple\n")
    with (
        Halves(tmp_path, f"--token-file={right}", token_file=right) as halves,
        halves.nobody_else_suffers(),
        halves.host(f"--token-file={wrong}", num_envs=2) as host,
    ):
        assert host.wait() == ExitCode.REFUSED
        assert host.says("UNAUTHENTICATED")
        assert halves.metrics()["streams_unauthenticated_total"] == 1
