"""Environments that all fail at once, each in its own way, are replaced: in both directions, and on old env-servers."""

import pytest

from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from tests.system.environments import FAULTS, MEDLEY, all_are_back
from tests.system.halves import Halves

EXTRA = 1
"""Replacements that fail in turn: in the constructor."""


@pytest.mark.parametrize("listens", [False, True], ids=["env-server dials", "learner dials"])
@pytest.mark.parametrize("minor", range(PROTOCOL_MINOR + 1))
@pytest.mark.parametrize("frames", [1, 4], ids=["whole rows", "frame stacks"])
def test_environments_that_fail_together_all_come_back(
    request: pytest.FixtureRequest, listens: bool, minor: int, frames: int
) -> None:
    halves: Halves = request.getfixturevalue("halves" if frames == 1 else "stacked_halves")
    with (
        halves.nobody_else_suffers(),
        halves.host(
            "--max-failures=100", listens=listens, version=(PROTOCOL_VERSION, minor), env=MEDLEY, num_envs=len(FAULTS)
        ) as host,
    ):
        halves.wait_until(lambda: all_are_back(host.folder, host.num_envs), host)
        failures = host.failures()
        assert host.terminate() == 0
        halves.wait_until(lambda: halves.delivered(host) == sum(host.decisions().values()))
    if minor > 0:
        kinds = [fault.kind for fault in FAULTS.values()]
        assert failures == {kind: kinds.count(kind) + EXTRA * (kind == "exception") for kind in set(kinds)}
