"""Checks of a peer: one after the other, each with its verdict."""

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
    """The check does not apply to this peer, or the suite has not been given what it takes."""


@dataclass(frozen=True, slots=True)
class Check(Generic[Subject]):
    """One thing that is done to the peer."""

    name: str
    """For people, and for --only."""
    rules: tuple[str, ...]
    """Ids of rules that it looks at."""
    run: Callable[[Subject], None]
    """Raises ViolationError or SkippedError."""


@dataclass(frozen=True, slots=True)
class Result:
    """Of one check."""

    check: str
    rules: tuple[str, ...]
    outcome: Outcome
    seconds: float
    rule: str = ""
    """Id of the rule that is broken."""
    reason: str = ""
    """Where in the message and how it is broken, or why the check was skipped."""
    evidence: str = ""
    """A dump of the offending bytes; empty where none are to blame."""


def run_checks(
    checks: Sequence[Check[Subject]], subject: Subject, message: type[Message], *, stop_at_failure: bool = False
) -> Iterator[Result]:
    """The results, as they come; blocks for each. message: of what the peer sends."""
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
