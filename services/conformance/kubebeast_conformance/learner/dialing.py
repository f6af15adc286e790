"""Checks of a learner that dials, in particular of its End messages in place of a status."""

from collections.abc import Callable

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.violation import require
from kubebeast_conformance.learner.bad_messages import IN_ITS_PLACE, inner
from kubebeast_conformance.learner.dialing_subject import DialingLearner
from kubebeast_conformance.learner.playing import ACTIONS
from kubebeast_conformance.learner.stream import FleetStream
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Code = grpc.StatusCode


def plays(subject: DialingLearner) -> None:
    """Plays two streams, one after the other."""
    before = pb.Welcome()
    for _ in range(2):
        with subject.joined() as stream:
            run_id, minor = stream.welcome.run_id, stream.welcome.protocol_minor
            is_same = not before.run_id or (run_id, minor) == (before.run_id, before.protocol_minor)
            require(
                is_same, "W4", "welcome", f"run {run_id!r} and minor {minor} differ from those of the stream before"
            )
            before = stream.welcome
            stream.play(subject.options.num_steps)


def shows_its_token(subject: DialingLearner) -> None:
    if not subject.options.access.token_file:
        raise SkippedError("takes --token-file")
    subject.stream().call.close()


def closes_its_side_after_a_bye(subject: DialingLearner) -> None:
    with subject.joined() as stream:
        stream.play(3)
        stream.send(pb.ActRequest(bye=pb.Bye(reason=pb.Bye.REASON_SHUTDOWN)))
        stream.expect_closed_side("after a Bye")


def says_why(
    rule: str, code: grpc.StatusCode, send: Callable[[FleetStream], object]
) -> Callable[[DialingLearner], None]:
    """Returns a check that calls `send` in place of the third Observations."""

    def run(subject: DialingLearner) -> None:
        with subject.joined() as stream:
            stream.play(2)
            send(stream)
            stream.expect_end(rule, code, "in answer to a message that breaks the contract")

    return run


def refuses_another_version(subject: DialingLearner) -> None:
    with subject.stream() as stream:
        stream.hello.protocol_version = PROTOCOL_VERSION + 1
        stream.send(pb.ActRequest(hello=stream.hello))
        stream.expect_end("S1", Code.FAILED_PRECONDITION, "in answer to a Hello of another major version")


def waits_so_long(subject: DialingLearner) -> None:
    options = subject.options
    with subject.joined() as stream:
        stream.step()
        within_s = options.step_timeout_s + options.patience_s
        stream.expect_end("S5", Code.DEADLINE_EXCEEDED, "without Observations", within_s=within_s)


CHECKS = (
    Check("play", ("C1", "W1", "W2", "W3", "W4", "W6", *ACTIONS), plays),
    Check("token", ("C4",), shows_its_token),
    Check("bye", ("E8", "E9"), closes_its_side_after_a_bye),
    *(
        Check(f"end: {title}", ("E9", "S4"), says_why("S4", Code.INVALID_ARGUMENT, send))
        for title, send in IN_ITS_PLACE.items()
    ),
    Check(
        "end: step left out",
        ("E9", "S3"),
        says_why("S3", Code.INVALID_ARGUMENT, lambda stream: stream.send(inner(stream, 3))),
    ),
    Check("end: other major version", ("E9", "S1"), refuses_another_version),
    Check("end: no observations", ("E9", "S5"), waits_so_long),
)
