"""Checks of Observations in normal operation."""

from collections.abc import Callable

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract import answers
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_conformance.env_server.stream import PlayedStream
from kubebeast_conformance.env_server.subject import EnvServer
from kubebeast_conformance.wire.inbox import Ended
from kubebeast_conformance.wire.unknown_fields import with_unknown_fields
from kubebeast_protos.v1 import PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb

ROWS = ("C3", "O1", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11", "R1", "R2", "R3", "R4")


def plays(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.welcome()
    stream.play(subject.options.num_steps)


def plays_uncompressed(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    if pb.COMPRESSION_LZ4 not in stream.hello.offered_compression:
        raise SkippedError("it offers no compression")
    stream.welcome(lz4=False)
    stream.play(subject.options.num_steps)


def plays_with(minor: int) -> Callable[[EnvServer], None]:
    """Returns a check with a learner of this minor version."""

    def run(subject: EnvServer) -> None:
        stream = subject.fresh_stream()
        stream.welcome(minor)
        if has_refused(stream):
            raise SkippedError(f"it does not play with minor version {minor}")
        stream.play(subject.options.num_steps)

    return run


def plays_with_options(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    if stream.hello.protocol_minor < ADDITIONS["Actions.episode_options"]:
        raise SkippedError("it does not know options of episodes")
    stream.welcome(with_options=True)
    if has_refused(stream):
        raise SkippedError("its environments take no options")
    stream.play(subject.options.num_steps, "W8")


def has_refused(stream: PlayedStream) -> bool:
    """Returns True if the stream ends after the Welcome, e.g. because the env-server needs newer rows."""
    return isinstance(stream.call.inbox.peek(stream.patience_s), Ended)


def waits_for_actions(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.welcome()
    stream.observe()
    for _ in range(2):
        stream.expect_silence("O2", subject.options.quiet_s, "while the Actions of the step before are due", end="T2")
        stream.act()
        stream.observe("T2")


def tells_its_time_where_asked(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.welcome()
    stream.observe()
    for step in range(20):
        stream.act(traced=step % 2 == 0)
        stream.observe()


def skips_unknown_fields(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    welcome = answers.welcome(stream.hello, lz4=False)
    stream.checker.welcome(PROTOCOL_MINOR, list(welcome.compression), len(welcome.log_info))
    stream.send(with_unknown_fields(1, welcome.SerializeToString()))
    stream.observe("V1")
    stream.send(with_unknown_fields(2, stream.actions().SerializeToString()))
    stream.observe("V1")


CHECKS = (
    Check("play", ROWS, plays),
    Check("play without compression", ROWS, plays_uncompressed),
    Check("play with options of episodes", ("W8", *ROWS), plays_with_options),
    *(
        Check(f"play with a learner of minor version {minor}", ("V2", *ROWS), plays_with(minor))
        for minor in range(PROTOCOL_MINOR)
    ),
    Check("one step at a time", ("O2", "T2"), waits_for_actions),
    Check("time of a step", ("O11",), tells_its_time_where_asked),
    Check("fields of newer versions", ("V1",), skips_unknown_fields),
)
