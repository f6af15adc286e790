"""The suite passes a learner that dials and keeps the contract, and detects each rule that another one breaks."""

import pytest

from kubebeast_conformance.check import Result, run_checks
from kubebeast_conformance.learner.dialing_subject import DialingLearner
from kubebeast_conformance.learner.subject import Options
from kubebeast_conformance.learner.suite import DIALING_CHECKS
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.contract.faulty_dialing_learner import FaultyDialingLearner
from tests.contract.faulty_learner import STEP_TIMEOUT_S

FAULTS = {
    **dict.fromkeys(("E9", "E9 open", "E9 silent", "E9 more"), "end: garbage"),
    "E9 after a bye": "bye",
    **dict.fromkeys(("W4", "A1"), "play"),
}
"""The check that detects a fault, by fault: the broken rule, and how it is broken."""


def results(fault: str, *names: str) -> list[Result]:
    """Returns the results of these checks, or of all, on a learner with that fault."""
    patience_s = 3.0 if fault == "E9 open" else 20.0
    options = Options(address="127.0.0.1:0", num_steps=20, patience_s=patience_s, step_timeout_s=STEP_TIMEOUT_S)
    checks = [check for check in DIALING_CHECKS if not names or check.name in names]
    assert len(checks) >= len(names)
    with DialingLearner(options) as subject, FaultyDialingLearner(fault, subject.address):
        return list(run_checks(checks, subject, pb.ActResponse))


def test_a_learner_that_dials_and_keeps_the_contract_passes() -> None:
    found = results("none")
    assert [result for result in found if result.outcome == "failed"] == []
    assert [result.check for result in found if result.outcome == "skipped"] == ["token"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_found_by_its_number(fault: str) -> None:
    (found,) = results(fault, FAULTS[fault])
    rule = fault.split()[0]
    assert (found.outcome, found.rule) == ("failed", rule), found.reason
    assert rule in found.rules
