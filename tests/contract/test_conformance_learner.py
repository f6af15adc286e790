"""The suite passes a learner that keeps the contract, and detects each rule that another one breaks."""

import sys
from pathlib import Path

import pytest

from harness.ports import free_address
from kubebeast_conformance.check import Result, run_checks
from kubebeast_conformance.keepalive import LONGEST_S
from kubebeast_conformance.learner.subject import DEFAULT_HELLO, Learner, Options
from kubebeast_conformance.learner.suite import CHECKS
from kubebeast_conformance.wire.access import Access
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.contract.faulty_learner import (
    HANDSHAKE_TIMEOUT_S,
    MAX_MESSAGE_MIB,
    MAX_STREAMS,
    STEP_TIMEOUT_S,
    TOKEN,
    TOTAL_STEPS,
    FaultyLearner,
)

FAULTS = {
    **dict.fromkeys(("W1", "W2", "W3", "W4", "W6", "W7", "A1", "A2", "A3", "A4", "A5", "A7"), "play"),
    "V1": "fields of newer versions",
    "V3": "play as an env-server of minor version 99",
    "T4": "a slow stream",
    "V4": "play as an env-server of minor version 0",
    "E8": "bye: REASON_SHUTDOWN",
    "C4": "token",
    "S1": "hello: other major version",
    "S1 run": "hello: another run",
    "S2": "hello: no instance_id",
    "C5": "hello: no instance_id",
    "S3": "observations: step left out",
    "S3 in a hurry": "observations: two at once",
    "S4": "message: garbage",
    "S5": "no hello",
    "C2": "compression of gRPC",
    "C3": "a message above the limit",
    "S7": "one stream too many",
    "S6": "the end of the run",
    "T5": "keepalive",
    "C6": "floods of frames",
}
"""The check that detects a fault, by broken rule, and by behavior if a rule can be broken in several ways."""


def masked_hello() -> pb.Hello:
    hello = pb.Hello()
    hello.CopyFrom(DEFAULT_HELLO)
    hello.observation.add(path="mask", dtype=pb.DTYPE_BOOL, shape=[3], role=pb.ROLE_ACTION_MASK)
    return hello


def results(fault: str, token_file: Path, *names: str, patience_s: float = 20.0) -> list[Result]:
    """Returns the results of these checks, or of all, on a learner with that fault."""
    token_file.write_text(TOKEN)
    checks = [check for check in CHECKS if not names or check.name in names]
    assert len(checks) >= len(names)
    with FaultyLearner(fault, with_token=True) as learner:
        options = Options(
            address=learner.address,
            hello=masked_hello(),
            access=Access(token_file=str(token_file)),
            num_steps=40,
            patience_s=patience_s,
            quiet_s=0.3,
            handshake_timeout_s=HANDSHAKE_TIMEOUT_S,
            step_timeout_s=LONGEST_S if fault == "T5" else STEP_TIMEOUT_S,
            max_message_mib=MAX_MESSAGE_MIB,
            max_streams=MAX_STREAMS,
            total_steps=TOTAL_STEPS,
            long_waits=bool(names),
            floods=bool(names),
        )
        return list(run_checks(checks, Learner(options), pb.ActResponse))


def test_a_learner_that_keeps_the_contract_passes(tmp_path: Path) -> None:
    found = results("none", tmp_path / "token", patience_s=60.0)
    assert [result for result in found if result.outcome == "failed"] == []
    assert [result.check for result in found if result.outcome == "skipped"] == [
        "keepalive",
        *("floods of headers", "floods of calls", "floods of frames"),
        "SIGTERM",
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_found_by_its_number(tmp_path: Path, fault: str) -> None:
    patience_s = {"S5": 3.0, "S6": 3.0, "T4": 3.0, "C3": 3.0, "C6": 8.0}.get(fault, 20.0)
    (found,) = results(fault, tmp_path / "token", FAULTS[fault], patience_s=patience_s)
    rule = fault.split()[0]
    assert (found.outcome, found.rule) == ("failed", rule), found.reason
    assert rule in found.rules


@pytest.mark.parametrize(("fault", "outcome", "rule"), [("none", "passed", ""), ("S6 SIGTERM", "failed", "S6")])
def test_what_streams_are_told_by_a_learner_that_is_replaced_is_looked_at(fault: str, outcome: str, rule: str) -> None:
    command = [sys.executable, "-m", "tests.contract.faulty_learner", fault, "{address}"]
    options = Options(address=free_address(), command=command, hello=masked_hello(), patience_s=20.0)
    checks = [check for check in CHECKS if check.name == "SIGTERM"]
    with Learner(options) as subject:
        (found,) = run_checks(checks, subject, pb.ActResponse)
    assert (found.outcome, found.rule) == (outcome, rule), found.reason
