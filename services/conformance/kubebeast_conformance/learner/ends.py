"""Checks of statuses at the end of a run, and of a learner that receives SIGTERM."""

import time

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.violation import ViolationError, require
from kubebeast_conformance.learner.subject import END_S, Learner
from kubebeast_conformance.wire.inbox import Ended

Code = grpc.StatusCode
STEPS_AT_A_TIME = 50
RETRY_S = 0.05
NOBODY_LISTENS = "failed to connect"
"""Start of gRPC's error text for a call to an address without a listener."""
ENOUGH = 4
"""Factor of the run's steps after which the run must be over. It exceeds 1 because dropped steps do not count."""


def is_about_to_be_replaced(subject: Learner) -> None:
    process = subject.process
    with subject.joined() as first, subject.joined() as second:
        first.step()
        second.step()
        process.terminate()
        for stream in (first, second):
            stream.expect_status("S6", Code.UNAVAILABLE, "after SIGTERM")
    end = _newcomer(subject)
    require(
        end is not None and end.code is Code.UNAVAILABLE, "S6", "", f"after SIGTERM, a new stream gets {_answer(end)}"
    )
    process.wait(END_S)


def is_over_for_newcomers(subject: Learner) -> None:
    """Plays until the run ends, after which new streams must get OUT_OF_RANGE. The playing stream may get no answer."""
    options = subject.options
    if not options.total_steps:
        raise SkippedError("takes --total-steps, and a learner that stays when its run is finished")
    subject.revive()
    with subject.joined() as stream:
        num_steps, answered_at = 0, time.monotonic()
        while num_steps < ENOUGH * options.total_steps:
            for _ in range(STEPS_AT_A_TIME):
                if not stream.advance(options.quiet_s):
                    break
                num_steps += options.hello.num_envs
                answered_at = time.monotonic()
            end = _newcomer(subject)
            if end is not None and end.code is Code.OUT_OF_RANGE:
                return
            if end is not None and end.details.startswith(NOBODY_LISTENS):
                raise SkippedError("takes a learner that stays when its run is finished, as with --linger")
            if time.monotonic() - answered_at > options.patience_s:
                reason = f"after {num_steps} steps, it stops playing, and a new stream gets {_answer(end)}"
                raise ViolationError("S6", "", reason)
            time.sleep(RETRY_S)
    raise SkippedError(f"the run is not finished after {num_steps} steps")


def _newcomer(subject: Learner) -> Ended | None:
    """Opens a stream; returns its end, or None if it gets a Welcome."""
    with subject.stream() as stream:
        return stream.try_to_join()


def _answer(end: Ended | None) -> str:
    return "a Welcome" if end is None else str(end)


CHECKS = (
    Check("SIGTERM", ("S6",), is_about_to_be_replaced),
    Check("the end of the run", ("S6",), is_over_for_newcomers),
)
