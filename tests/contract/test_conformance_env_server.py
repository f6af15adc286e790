"""The suite passes an env-server that keeps the contract, and detects each rule that another one breaks."""

import sys

import pytest

from kubebeast_conformance.check import Result, run_checks
from kubebeast_conformance.env_server.subject import EnvServer, Options
from kubebeast_conformance.env_server.suite import CHECKS
from kubebeast_protos.v1 import actor_pool_pb2 as pb

FAULTS = {
    **dict.fromkeys(("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H12", "H13", "H14", "C2"), "hello"),
    "H10": "UNAVAILABLE",
    "H11": "UNAVAILABLE",
    "W5": "welcome of another major version",
    "W5 run": "welcome of another run",
    "W5 options": "welcome with options that are no object",
    "W8": "play with options of episodes",
    **dict.fromkeys(("O1", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11", "R1", "R2", "R3"), "play"),
    "O2": "one step at a time",
    "T2": "one step at a time",
    "V1": "fields of newer versions",
    "V2": "play with a learner of minor version 0",
    "A6": "actions: of another step",
    "E1": "SIGTERM",
    "E2": "SIGTERM",
    "E3": "UNAVAILABLE",
    "E4": "RESOURCE_EXHAUSTED in place of the welcome",
    "E5": "INVALID_ARGUMENT is final",
    **dict.fromkeys(("E6", "E6 shrinking", "E6 alike"), "back-off"),
    "T1": "a slow welcome",
    "T5": "keepalive",
}
"""The check that detects a fault, by fault: the broken rule, and how it is broken."""


def results(fault: str, *names: str, patience_s: float = 20.0) -> list[Result]:
    """Returns the results of these checks, or of all, on an env-server with that fault."""
    command = [sys.executable, "-m", "tests.contract.faulty_env_server", fault, "{address}"]
    options = Options(
        listen="127.0.0.1:0",
        command=command,
        num_steps=40,
        patience_s=patience_s,
        quiet_s=0.6,
        long_waits=bool(names),
    )
    checks = [check for check in CHECKS if not names or check.name in names]
    assert len(checks) >= len(names)
    with EnvServer(options) as subject:
        return list(run_checks(checks, subject, pb.ActRequest))


def test_an_env_server_that_keeps_the_contract_passes() -> None:
    found = results("none")
    assert [result for result in found if result.outcome == "failed"] == []
    skipped = {result.check for result in found if result.outcome == "skipped"}
    assert skipped == {"token", "actions: not finite", "a second learner", "a slow welcome", "keepalive"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_found_by_its_number(fault: str) -> None:
    (found,) = results(fault, FAULTS[fault], patience_s=5.0 if fault in ("A6", "E2", "E4", "W5", "W5 run") else 20.0)
    rule = fault.split()[0]
    assert (found.outcome, found.rule) == ("failed", rule), found.reason
    assert rule in found.rules


@pytest.mark.slow
def test_a_connection_that_is_kept_although_a_ping_has_no_answer_is_found() -> None:
    (found,) = results("T5 late", "keepalive")
    assert (found.outcome, found.rule) == ("failed", "T5"), found.reason
