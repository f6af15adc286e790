"""Checks of a peer, run in sequence, and their results."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from google.protobuf.message import Message

from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.wire.evidence import evidence

Outcome = Literal["passed", "failed", "skipped"]
Subject = TypeVar("Subject")


class SkippedError(Exception):
    """The check does not apply to this peer, or requires a flag that is not set."""


@dataclass(frozen=True, slots=True)
class Check(Generic[Subject]):
    """A test of the peer."""

    name: str
    """Name in reports and for --only."""
    rules: tuple[str, ...]
    """Ids of the rules that it checks."""
    run: Callable[[Subject], None]
    """Runs the check. Raises ViolationError or SkippedError."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one check."""

    check: str
    rules: tuple[str, ...]
    outcome: Outcome
    seconds: float
    rule: str = ""
    """Id of the broken rule."""
    reason: str = ""
    """Place in the message and description of the violation, or reason for skipping the check."""
    evidence: str = ""
    """Dump of the offending bytes; empty if the violation is not in a message."""


def run_checks(
    checks: Sequence[Check[Subject]], subject: Subject, message: type[Message], *, stop_at_failure: bool = False
) -> Iterator[Result]:
    """Yields results one by one and blocks for each. message is the type of the peer's messages."""
    for check in checks:
        result = _result(check, subject, message)
        yield result
        if stop_at_failure and result.outcome == "failed":
            return


def _result(check: Check[Subject], subject: Subject, message: type[Message]) -> Result:
    began = time.monotonic()
    outcome: Outcome = "passed"
    rule = reason = dump = ""
    try:
        check.run(subject)
    except ViolationError as error:
        outcome, rule, dump = "failed", error.rule.id, evidence(error, message)
        reason = f"{error.place}: {error.reason}" if str(error.place) else error.reason
    except SkippedError as error:
        outcome, reason = "skipped", str(error)
    return Result(check.name, check.rules, outcome, time.monotonic() - began, rule, reason, dump)
