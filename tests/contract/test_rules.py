"""The rules of the contract are in one table: each number stands for one rule, and each rule is checked."""

from kubebeast_conformance.chapters import CHAPTERS
from kubebeast_conformance.env_server.suite import CHECKS as ENV_SERVER_CHECKS
from kubebeast_conformance.learner.suite import CHECKS as LEARNER_CHECKS
from kubebeast_conformance.learner.suite import DIALING_CHECKS
from kubebeast_conformance.rules import RULES
from tests.contract import test_conformance_dialing, test_conformance_env_server, test_conformance_learner

SIDES = {
    "env-server": {rule for check in ENV_SERVER_CHECKS for rule in check.rules},
    "learner": {rule for check in LEARNER_CHECKS for rule in check.rules}
    | {rule for check in DIALING_CHECKS for rule in check.rules},
}
"""Checked rules, by the peer under test."""


def test_a_number_stands_for_one_rule_and_chapters_count_from_1() -> None:
    numbers = {letter: [rule.id for rule in RULES if rule.id[0] == letter] for letter in CHAPTERS}
    assert {letter: [f"{letter}{n}" for n in range(1, len(ids) + 1)] for letter, ids in numbers.items()} == numbers
    assert sum(map(len, numbers.values())) == len(RULES)


def test_every_rule_is_checked() -> None:
    assert {rule.id for rule in RULES} == SIDES["env-server"] | SIDES["learner"]


def test_a_rule_is_asked_of_those_who_must_keep_it() -> None:
    for rule in RULES:
        for side, rules in SIDES.items():
            assert rule.id not in rules or rule.side in (side, "both"), f"{rule.id} is not for the {side}"


def test_at_least_25_rules_have_a_peer_that_breaks_them() -> None:
    faults = (*test_conformance_env_server.FAULTS, *test_conformance_learner.FAULTS, *test_conformance_dialing.FAULTS)
    broken = {fault.split()[0] for fault in faults}
    assert len(broken) >= 25
    assert broken <= {rule.id for rule in RULES}
