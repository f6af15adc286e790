"""Checks of the refusal of invalid messages after the Hello."""

from collections.abc import Callable

import grpc
import numpy as np

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.leaves import dtype_of
from kubebeast_conformance.contract.rows import ADDITIONS, DUE, ROWS, UNDER_WAY, rows_when
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.learner.stream import FleetStream
from kubebeast_conformance.learner.subject import Learner
from kubebeast_protos.v1 import PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Invalid = grpc.StatusCode.INVALID_ARGUMENT
NUM_AT_ONCE = 4
NUM_TRIES = 16
"""Number of streams that do not wait for answers. On a busy machine or slow network, each message may be answered
before the next arrives."""
FLAGS = ("is_first", "terminated", "truncated", "interrupted", "waiting")
Change = Callable[[FleetStream, pb.Observations], object]
"""Breaks valid Observations."""


def field(name: str, value: object) -> Change:
    return lambda stream, message: setattr(message, name, value)


def all_rewards(reward: float) -> Change:
    return lambda stream, message: setattr(message, "rewards", _floats(stream, reward))


def longer(name: str) -> Change:
    return lambda stream, message: setattr(message, name, getattr(message, name) + b"\0")


def other_step(offset: int) -> Change:
    return lambda stream, message: setattr(message, "step", message.step + offset)


def leaf_missing(stream: FleetStream, message: pb.Observations) -> None:
    message.leaves.pop()


def leaf_too_many(stream: FleetStream, message: pb.Observations) -> None:
    message.leaves.append(b"")


def leaf_too_long(stream: FleetStream, message: pb.Observations) -> None:
    message.leaves[_plain_leaf(stream)] += b"\0"


def leaf_too_short(stream: FleetStream, message: pb.Observations) -> None:
    index = _plain_leaf(stream)
    message.leaves[index] = message.leaves[index][:-1]


def leaf_not_lz4(stream: FleetStream, message: pb.Observations) -> None:
    for i, choice in enumerate(stream.welcome.compression):
        if choice == pb.COMPRESSION_LZ4:
            message.leaves[i] = b"\xff" * 12
            return
    raise SkippedError("no leaf is compressed")


def leaf_not_finite(stream: FleetStream, message: pb.Observations) -> None:
    for i, leaf in enumerate(stream.hello.observation):
        if dtype_of(leaf).kind == "f" and stream.welcome.compression[i] != pb.COMPRESSION_LZ4:
            elements = np.frombuffer(message.leaves[i], dtype_of(leaf)).copy()
            elements[-1] = np.nan
            message.leaves[i] = elements.tobytes()
            return
    raise SkippedError("no leaf holds floats")


def episode_of_unknown_env(stream: FleetStream, message: pb.Observations) -> None:
    message.episodes.add(env=stream.hello.num_envs)


def episodes_too_many(stream: FleetStream, message: pb.Observations) -> None:
    message.episodes.extend([pb.Episode()] * (stream.hello.num_envs + 1))


def episode_not_finite(stream: FleetStream, message: pb.Observations) -> None:
    message.episodes.add(episode_return=float("nan"))


def info_too_long(stream: FleetStream, message: pb.Observations) -> None:
    if stream.welcome.protocol_minor < ADDITIONS["Episode.info"]:
        raise SkippedError("the learner does not know info")
    message.episodes.add(info=[0.0] * (len(stream.welcome.log_info) + 1))


def waiting_without_turns(stream: FleetStream, message: pb.Observations) -> None:
    if stream.welcome.protocol_minor < ADDITIONS["Observations.waiting"]:
        raise SkippedError("the learner does not know rows that wait")
    message.waiting = b"\1" * stream.hello.num_envs


OBSERVATIONS: dict[str, tuple[str, Change]] = {
    "step repeated": ("step", other_step(-1)),
    "step left out": ("step", other_step(1)),
    "leaf missing": ("leaves", leaf_missing),
    "leaf too many": ("leaves", leaf_too_many),
    "leaf too long": ("leaves", leaf_too_long),
    "leaf too short": ("leaves", leaf_too_short),
    "leaf that is no LZ4 block": ("leaves", leaf_not_lz4),
    "leaf that is not finite": ("leaves", leaf_not_finite),
    "rewards missing": ("rewards", field("rewards", b"")),
    "rewards too long": ("rewards", longer("rewards")),
    "reward that is not finite": ("rewards", all_rewards(float("inf"))),
    "terminated missing": ("terminated", field("terminated", b"")),
    "truncated too long": ("truncated", longer("truncated")),
    "is_first missing": ("is_first", field("is_first", b"")),
    "interrupted too short": ("interrupted", field("interrupted", b"\0")),
    "waiting without turns": ("waiting", waiting_without_turns),
    "episode of an unknown environment": ("episodes", episode_of_unknown_env),
    "episodes too many": ("episodes", episodes_too_many),
    "episode that is not finite": ("episodes", episode_not_finite),
    "info of an episode with too many values": ("episodes", info_too_long),
}
"""By title: a name that the text of the status must contain, and the change that breaks the second Observations."""


def are_refused(names: str, change: Change) -> Callable[[Learner], None]:
    """Returns a check of one change. A witness stream checks that other streams continue."""

    def run(subject: Learner) -> None:
        with subject.joined() as witness, subject.joined() as stream:
            witness.step()
            stream.exchange(all_first(stream))
            request = inner(stream, 1)
            change(stream, request.observations)
            stream.send(request)
            stream.expect_status("S3", Invalid, "in answer to Observations that break the contract", names=names)
            witness.play(2, "C5")

    return run


def rows_outside_the_table(subject: Learner) -> None:
    """Sends each combination of flags that is no row, on its own stream, for an episode that is due or under way."""
    with subject.joined() as witness:
        num_flags = len(FLAGS) - (witness.welcome.protocol_minor < ADDITIONS["Observations.waiting"])
        for episode in (DUE, UNDER_WAY):
            known = {row.flags[:num_flags] for row in rows_when(episode, PROTOCOL_MINOR)}
            for number in range(2**num_flags):
                flags = tuple(bool(number >> bit & 1) for bit in range(num_flags))
                if flags not in known:
                    _check_row_is_refused(subject, episode, flags)
        witness.play(2, "C5")


def _check_row_is_refused(subject: Learner, episode: str, flags: tuple[bool, ...]) -> None:
    with subject.joined() as stream:
        step = 0
        if episode == UNDER_WAY:
            stream.exchange(all_first(stream))
            step = 1
        request = all_first(stream) if episode == DUE else inner(stream, step)
        for name, flag in zip(FLAGS, flags, strict=False):
            setattr(request.observations, name, bytes([flag]) * stream.hello.num_envs)
        stream.send(request)
        named = ", ".join(name for name, flag in zip(FLAGS, flags, strict=False) if flag) or "none"
        stream.expect_status("S3", Invalid, f"in answer to a row (flags: {named}) while its episode is {episode}")


def reward_of_a_first_row(subject: Learner) -> None:
    with subject.joined() as stream:
        request = all_first(stream)
        request.observations.rewards = _floats(stream, 1.0)
        stream.send(request)
        stream.expect_status("S3", Invalid, "in answer to a first row with a reward", names="rewards")


def is_refused_in_its_place(send: Callable[[FleetStream], object]) -> Callable[[Learner], None]:
    """Returns a check that calls `send` in place of the second Observations."""

    def run(subject: Learner) -> None:
        with subject.joined() as witness, subject.joined() as stream:
            witness.step()
            stream.step()
            send(stream)
            stream.expect_status("S4", Invalid, "in answer to a message that breaks the contract")
            witness.play(2, "C5")

    return run


def two_at_once(subject: Learner) -> None:
    """Requires the refusal of one of several streams, as a learner accepts a message that arrives after its answer."""
    for _ in range(NUM_TRIES):
        with subject.joined() as stream:
            stream.send(all_first(stream))
            for step in range(1, NUM_AT_ONCE):
                stream.send(inner(stream, step))
            if not stream.is_answered(NUM_AT_ONCE):
                stream.expect_status("S3", Invalid, "if Observations do not wait for Actions")
                return
    raise ViolationError("S3", "", f"{NUM_TRIES} streams continue although Observations do not wait for Actions")


def all_first(stream: FleetStream) -> pb.ActRequest:
    """Returns Observations of step 0, with a first row of each environment."""
    return stream.rows(0, next(row for row in ROWS if row.name == "first"))


def inner(stream: FleetStream, step: int) -> pb.ActRequest:
    """Returns Observations with a row of each environment within its episode."""
    return stream.rows(step, next(row for row in ROWS if row.name == "inner"))


def _plain_leaf(stream: FleetStream) -> int:
    for i, choice in enumerate(stream.welcome.compression):
        if choice != pb.COMPRESSION_LZ4:
            return i
    raise SkippedError("every leaf is compressed")


def _floats(stream: FleetStream, value: float) -> bytes:
    return np.full(stream.hello.num_envs, value, "<f4").tobytes()


IN_ITS_PLACE: dict[str, Callable[[FleetStream], object]] = {
    "a second hello": lambda stream: stream.send(pb.ActRequest(hello=stream.hello)),
    "no payload": lambda stream: stream.send(b""),
    "garbage": lambda stream: stream.send(b"\xff" * 100),
    "a bye with 201 characters": lambda stream: stream.send(pb.ActRequest(bye=pb.Bye(detail="x" * 201))),
}

CHECKS = (
    *(Check(f"observations: {title}", ("S3", "C5"), are_refused(*entry)) for title, entry in OBSERVATIONS.items()),
    Check("observations: rows outside the table", ("S3", "C5"), rows_outside_the_table),
    Check("observations: reward of a first row", ("S3",), reward_of_a_first_row),
    Check("observations: two at once", ("S3",), two_at_once),
    *(Check(f"message: {title}", ("S4", "C5"), is_refused_in_its_place(send)) for title, send in IN_ITS_PLACE.items()),
)
