"""Checks of Welcome and Actions in normal operation."""

from collections.abc import Callable

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_conformance.contract.violation import require
from kubebeast_conformance.learner.subject import Learner
from kubebeast_conformance.wire.unknown_fields import with_unknown_fields
from kubebeast_protos.v1 import PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb

ACTIONS = ("A1", "A2", "A3", "A4", "A5", "A7")
NEWER_MINOR = 99
FEW_STEPS = 30


def plays(subject: Learner) -> None:
    """Plays two streams in turn."""
    with subject.joined() as first, subject.joined() as second:
        run_id, minor = second.welcome.run_id, second.welcome.protocol_minor
        require(run_id == first.welcome.run_id, "W4", "welcome.run_id", f"{run_id!r}, before {first.welcome.run_id!r}")
        require(minor == first.welcome.protocol_minor, "W2", "welcome.protocol_minor", "differs between streams")
        for _ in range(subject.options.num_steps):
            first.step()
            second.step()
        first.leave()
        second.leave()


def plays_with(minor: int) -> Callable[[Learner], None]:
    """Returns a check with an env-server of this minor version."""

    def change(hello: pb.Hello) -> None:
        hello.protocol_minor = minor
        if minor < ADDITIONS["Hello.env_config"]:
            hello.ClearField("env_config")
        if minor < ADDITIONS["Hello.run"]:
            hello.ClearField("run")

    def run(subject: Learner) -> None:
        with subject.stream(change) as stream:
            stream.join("V3")
            stream.play(FEW_STEPS)
            stream.leave()

    return run


def plays_its_run(subject: Learner) -> None:
    with subject.joined() as first:
        run_id = first.welcome.run_id
        with subject.joined(lambda hello: setattr(hello, "run", run_id)) as second:
            answer = second.welcome.run_id
            require(answer == run_id, "W4", "welcome.run_id", f"{answer!r}, not {run_id!r}")
            second.play(FEW_STEPS)


def plays_without_compression(subject: Learner) -> None:
    with subject.joined(lambda hello: hello.ClearField("offered_compression")) as stream:
        stream.play(FEW_STEPS)
        stream.leave()


def skips_unknown_fields(subject: Learner) -> None:
    with subject.stream() as stream:
        stream.send(with_unknown_fields(1, stream.hello.SerializeToString()))
        stream.be_welcomed("V1")
        for _ in range(3):
            observations = stream.next_observations().observations
            stream.send(with_unknown_fields(2, observations.SerializeToString()))
            stream.actions(observations, "V1")


def waits_for_one_and_holds_up_no_other(subject: Learner) -> None:
    """Plays one stream while the other rests."""
    with subject.joined() as slow, subject.joined() as quick:
        slow.step()
        quick.play(FEW_STEPS, "T4")
        quick.expect_silence(subject.options.quiet_s)
        slow.play(3, "T4")


def takes_a_bye(reason: str) -> Callable[[Learner], None]:
    def run(subject: Learner) -> None:
        with subject.joined() as stream:
            stream.play(3)
            stream.send(pb.ActRequest(bye=pb.Bye(reason=reason, detail="the conformance suite has seen enough")))
            stream.call.half_close()
            stream.expect_status("E8", grpc.StatusCode.OK, "after a Bye")

    return run


def takes_a_closed_side(subject: Learner) -> None:
    with subject.joined() as stream:
        stream.play(3)
        stream.call.half_close()
        stream.expect_status("E8", grpc.StatusCode.OK, "after the fleet's side was closed")


def lives_through_broken_streams(subject: Learner) -> None:
    with subject.joined() as witness:
        for num_steps in range(4):
            with subject.joined() as stream:
                stream.play(num_steps)
                stream.call.cancel()
        witness.play(3, "C5")


def wants_a_token(subject: Learner) -> None:
    if not subject.options.access.token_file:
        raise SkippedError("takes --token-file")
    with subject.stream(with_token=False) as stream:
        stream.send(pb.ActRequest(hello=stream.hello))
        stream.expect_status("C4", grpc.StatusCode.UNAUTHENTICATED, "without a token")


CHECKS = (
    Check("play", ("C1", "W1", "W2", "W3", "W4", "W6", "W7", *ACTIONS), plays),
    Check("play for the learner's run by its name", ("W1", "W4"), plays_its_run),
    Check("play without compression", ("W3", *ACTIONS), plays_without_compression),
    *(
        Check(f"play as an env-server of minor version {minor}", ("V3", "V4", *ACTIONS), plays_with(minor))
        for minor in (*range(PROTOCOL_MINOR), NEWER_MINOR)
    ),
    Check("fields of newer versions", ("V1",), skips_unknown_fields),
    Check("a slow stream", ("T4",), waits_for_one_and_holds_up_no_other),
    *(Check(f"bye: {name}", ("E8",), takes_a_bye(name)) for name in pb.Bye.Reason.keys()),  # noqa: SIM118
    Check("a closed side", ("E8",), takes_a_closed_side),
    Check("broken streams", ("C5",), lives_through_broken_streams),
    Check("token", ("C4",), wants_a_token),
)
