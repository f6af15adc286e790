"""Checks of an env-server's behavior after the end of a stream."""

import time
from collections.abc import Callable

import grpc

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.violation import ViolationError, require
from kubebeast_conformance.env_server.stream import PlayedStream
from kubebeast_conformance.env_server.subject import DialedCall, EnvServer
from kubebeast_conformance.wire.inbox import Ended, SilentError
from kubebeast_conformance.wire.methods import PLAY
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Code = grpc.StatusCode
SHORTEST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0
CONNECTING_S = 5.0
"""Maximum time for connecting, which is included in measured waits."""
SHUTDOWN_S = 10.0
NUM_WAITS = 4
"""Consecutive waits of one process."""
NUM_PROCESSES = 5
ALIKE = 0.1
"""Threshold for random waits. For the n-th wait, the difference is that of the second longest from the shortest among
the processes: a busy machine may delay one. If the sum of these differences is below this fraction of the sum of the
shortest waits, the waits are not random. For waits drawn from the upper half of 0.25 s, 0.5 s, 1 s and 2 s, the false
positive rate is 10^-4.
"""


def comes_again_after(code: grpc.StatusCode) -> Callable[[EnvServer], None]:
    """Returns a check with this status in the middle of a stream."""

    def run(subject: EnvServer) -> None:
        stream = subject.fresh_stream()
        stream.welcome()
        stream.play(5)
        subject.finish(stream, code)
        _plays_from_the_beginning(subject, stream.hello)

    return run


def comes_again_after_a_break(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.welcome()
    stream.play(5)
    subject.ended_at = time.monotonic()
    stream.call.cancel()
    _plays_from_the_beginning(subject, stream.hello)


def comes_again_after_a_restart(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.welcome()
    stream.play(5)
    subject.restart_listener()
    _plays_from_the_beginning(subject, stream.hello)


def waits_longer_each_time(subject: EnvServer) -> None:
    """Refuses each Hello; in several processes, because a fleet with equal waits would reconnect all at once."""
    if subject.is_dialed:
        raise SkippedError("the suite dials")
    waits = [_waits(subject) for _ in range(NUM_PROCESSES if subject.options.command else 1)]
    for in_a_row in waits:
        shown = ", ".join(f"{wait:.2f}" for wait in in_a_row)
        require(in_a_row[-1] > in_a_row[0], "E6", "", f"waits that grow no longer: {shown} s")
    if len(waits) == 1:
        return
    nths = [sorted(nth) for nth in zip(*waits, strict=True)]
    differences = sum(nth[-2] - nth[0] for nth in nths)
    is_random = differences >= ALIKE * sum(nth[0] for nth in nths)
    require(is_random, "E6", "", f"the same waits in {NUM_PROCESSES} processes: they are not random")


def _waits(subject: EnvServer) -> list[float]:
    """Returns the waits of a new process in seconds."""
    stream, waits = subject.fresh_stream(), []
    for _ in range(NUM_WAITS):
        subject.finish(stream, Code.UNAVAILABLE)
        stream = subject.next_stream("E3")
        waits.append(_check_wait(subject))
    return waits


def comes_again_where_it_was_not_welcome(code: grpc.StatusCode) -> Callable[[EnvServer], None]:
    """Returns a check with this status in place of the Welcome."""

    def run(subject: EnvServer) -> None:
        stream = subject.fresh_stream()
        subject.finish(stream, code)
        _next_stream(subject, "E4")

    return run


def may_come_again_after_the_run(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    subject.finish(stream, Code.OUT_OF_RANGE, "the run is finished")
    if subject.comes_again(LONGEST_WAIT_S):
        _check_wait(subject)


def stops_after(code: grpc.StatusCode) -> Callable[[EnvServer], None]:
    """Returns a check with this status in place of the Welcome."""

    def run(subject: EnvServer) -> None:
        if not subject.options.command:
            raise SkippedError("takes a command that starts the env-server")
        stream = subject.fresh_stream()
        subject.finish(stream, code)
        if subject.comes_again(LONGEST_WAIT_S + subject.options.quiet_s):
            raise ViolationError("E5", "", f"it came again after {code.name}")

    return run


def says_bye(subject: EnvServer) -> None:
    """Sends SIGTERM while the env-server waits for Actions, and while it plays."""
    for is_answered in (False, True):
        stream = subject.fresh_stream()
        stream.welcome()
        stream.play(5)
        asked_at = time.monotonic()
        subject.process.terminate()
        if is_answered:
            stream.act()
        bye = stream.expect_bye("E2")
        require(time.monotonic() - asked_at < SHUTDOWN_S, "E2", "bye", f"later than {SHUTDOWN_S:g} s after SIGTERM")
        reason = bye.reason
        require(reason == pb.Bye.REASON_SHUTDOWN, "E2", "bye.reason", f"{reason}, not REASON_SHUTDOWN")
        stream.expect_end("E1", "after the Bye", bye=False)
        subject.finish(stream, Code.OK)
        if subject.process.wait(SHUTDOWN_S) is None:
            raise ViolationError("E2", "", f"the process runs on {SHUTDOWN_S:g} s after the end of the stream")


def lets_one_in_at_a_time(subject: EnvServer) -> None:
    if not subject.is_dialed:
        raise SkippedError("the env-server dials")
    stream = subject.fresh_stream()
    stream.welcome()
    stream.play(5)
    with DialedCall(PLAY, subject.address, subject.options.access) as second:
        try:
            item = second.inbox.get(subject.options.patience_s)
        except SilentError as error:
            raise ViolationError("E7", "", f"a second call: {error}") from error
        if isinstance(item, Ended):
            fits = item.code is Code.RESOURCE_EXHAUSTED
            require(fits, "E7", "", f"a second call ended with {item}, not RESOURCE_EXHAUSTED")
    stream.act()
    stream.observe("E7")


def _plays_from_the_beginning(subject: EnvServer, before: pb.Hello) -> None:
    stream = _next_stream(subject, "E7" if subject.is_dialed else "E3")
    hello = stream.hello
    for name in ("env_server_id", "instance_id"):
        require(getattr(hello, name) == getattr(before, name), "H10", f"hello.{name}", "changed within a process")
    for name in ("env_id", "num_envs", "observation", "action"):
        require(getattr(hello, name) == getattr(before, name), "H11", f"hello.{name}", "changed within a process")
    stream.welcome()
    try:
        stream.play(5)
    except ViolationError as error:
        if error.rule.id in ("O1", "R1"):
            raise ViolationError("E3", error.place, f"not from the beginning: {error.reason}", error.message) from error
        raise


def _next_stream(subject: EnvServer, rule: str) -> PlayedStream:
    stream = subject.next_stream(rule)
    _check_wait(subject)
    return stream


def _check_wait(subject: EnvServer) -> float:
    """Returns the seconds since the end of the previous stream. Raises ViolationError."""
    waited_s = time.monotonic() - subject.ended_at
    if not subject.is_dialed:
        require(waited_s >= SHORTEST_WAIT_S, "E6", "", f"it dialed again after {waited_s:.3f} s")
        require(waited_s <= LONGEST_WAIT_S + CONNECTING_S, "E6", "", f"it dialed again only after {waited_s:.1f} s")
    return waited_s


CHECKS = (
    Check("UNAVAILABLE", ("E3", "E6", "H10", "H11"), comes_again_after(Code.UNAVAILABLE)),
    Check("an end without a word", ("E3", "E6", "H10", "H11"), comes_again_after(Code.OK)),
    Check("a broken stream", ("E3", "E6", "H10", "H11"), comes_again_after_a_break),
    Check("a learner that is restarted", ("E3", "E6", "H10", "H11"), comes_again_after_a_restart),
    Check("back-off", ("E6",), waits_longer_each_time),
    *(
        Check(f"{code.name} in place of the welcome", ("E4",), comes_again_where_it_was_not_welcome(code))
        for code in (Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED)
    ),
    Check("OUT_OF_RANGE", ("E4", "E6"), may_come_again_after_the_run),
    *(
        Check(f"{code.name} is final", ("E5",), stops_after(code))
        for code in (
            *(Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.UNAUTHENTICATED),
            *(Code.PERMISSION_DENIED, Code.UNIMPLEMENTED),
        )
    ),
    Check("SIGTERM", ("E1", "E2"), says_bye),
    Check("a second learner", ("E7",), lets_one_in_at_a_time),
)
