"""The real pool refuses a stream that breaks one rule of the contract, with a status that names the field."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest

from kubebeast_conformance.contract.courses import Values, follow
from kubebeast_conformance.contract.env_server_stream import FLAGS, check_stream
from kubebeast_conformance.contract.rows import DUE, UNDER_WAY, rows_when
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.playing_pool import PlayingPool, env_spec
from tests.integration.raw_stream import converse

IMAGE, SPEED, MASS, ROOM, DOOR = range(5)
HELLO = pb.Hello(
    protocol_version=PROTOCOL_VERSION,
    protocol_minor=PROTOCOL_MINOR,
    env_server_id="test",
    instance_id="test",
    env_id="Test-v0",
    num_envs=2,
    observation=[
        pb.LeafSpec(path="image", dtype=pb.DTYPE_UINT8, shape=[2, 3], frame_stack=3),
        pb.LeafSpec(path="speed", dtype=pb.DTYPE_FLOAT32, shape=[2]),
        pb.LeafSpec(path="mass", dtype=pb.DTYPE_FLOAT64),
        pb.LeafSpec(path="room", dtype=pb.DTYPE_INT16, num_categories=5),
        pb.LeafSpec(path="door", dtype=pb.DTYPE_BOOL),
    ],
    action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=3)],
    offered_compression=[pb.COMPRESSION_LZ4],
)
NAN, INF = float("nan"), float("inf")
Observations = pb.Observations


@pytest.fixture(scope="module")
def pool() -> Iterator[PlayingPool]:
    with PlayingPool(
        env_spec(HELLO.env_id, HELLO.observation, HELLO.action), max_offences=0
    ) as pool:  # all peers of a test have one host
        yield pool


WITH_TURNS = pb.Hello(num_agents=2, takes_turns=True)


def legal_stream(*rows_of_env_0: str, takes_turns: bool = False) -> list[pb.ActRequest]:
    """Returns the Hello and one step for each row of the table; environment 1 stays in its first episode."""
    hello = pb.Hello()
    hello.CopyFrom(HELLO)
    if takes_turns:
        hello.MergeFrom(WITH_TURNS)
    state, course = DUE, bytearray()
    for step, name in enumerate(rows_of_env_0):
        options = rows_when(state, PROTOCOL_MINOR, takes_turns=takes_turns)
        (row,) = (row for row in options if row.name == name)
        inner = next(i for i, other in enumerate(rows_when(UNDER_WAY, PROTOCOL_MINOR)) if other.name == "inner")
        course += bytes([options.index(row), inner if step else 0])
        state = row.then
    return [pb.ActRequest(hello=hello), *follow(hello, bytes(course), Values(0))]


def ending(pool: PlayingPool, stream: list[pb.ActRequest]) -> tuple[grpc.StatusCode, str]:
    with ThreadPoolExecutor(1) as peer:
        status = peer.submit(converse, pool.address, stream, "half-close")
        pool.play_until(status.done)
        return status.result()


@pytest.mark.parametrize("takes_turns", [False, True])
@pytest.mark.parametrize("reward", [0.0, 2.5])
@pytest.mark.parametrize("flags", [*itertools.product([False, True], repeat=5)])
@pytest.mark.parametrize("episode", [DUE, UNDER_WAY])
def test_only_rows_of_the_table_are_accepted(
    pool: PlayingPool, episode: str, flags: tuple[bool, ...], reward: float, takes_turns: bool
) -> None:
    rows = ("first", "terminated", "first") if episode == DUE else ("first", "inner", "inner")
    stream = legal_stream(*rows, takes_turns=takes_turns)
    message = stream[-1].observations
    for name, flag in zip(FLAGS, flags, strict=True):
        setattr(message, name, bytes([flag, False]))
    message.rewards = np.array([reward, 0.0], np.float32).tobytes()

    code, details = ending(pool, stream)

    options = rows_when(episode, PROTOCOL_MINOR, takes_turns=takes_turns)
    if any(row.flags == flags and (row.rewarded or not reward) for row in options):
        assert code is grpc.StatusCode.OK, details
    else:
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert details.startswith(
            tuple(f"observations.{name}[0]" for name in ("is_first", "interrupted", "waiting", "rewards"))
        )
        with pytest.raises(ViolationError):
            check_stream(stream)


def with_leaf(leaf: int, *elements: float) -> Callable[[Observations], None]:
    """Returns a change of a message: two rows of that leaf."""
    dtype = {SPEED: "<f4", MASS: "<f8", ROOM: "<i2", DOOR: "<u1"}[leaf]

    def change(message: Observations) -> None:
        message.leaves[leaf] = np.array(elements, dtype).tobytes()

    return change


def with_field(name: str, value: object) -> Callable[[Observations], None]:
    return lambda message: setattr(message, name, value)


BROKEN_MESSAGES: dict[str, tuple[str, Callable[[Observations], object]]] = {
    "step repeated": ("step", with_field("step", 1)),
    "step left out": ("step", with_field("step", 3)),
    "leaf missing": ("leaves", lambda message: message.leaves.pop()),
    "leaf too many": ("leaves", lambda message: message.leaves.append(b"")),
    "leaf too short": ("leaves[1]", with_leaf(SPEED, 1, 2, 3)),
    "leaf too long": ("leaves[1]", with_leaf(SPEED, 1, 2, 3, 4, 5)),
    "leaf not LZ4": ("leaves[0]", lambda message: message.leaves.__setitem__(IMAGE, b"\xff" * 12)),
    "leaf nan": ("leaves[1]", with_leaf(SPEED, 0, 0, NAN, 0)),
    "leaf infinite": ("leaves[1]", with_leaf(SPEED, -INF, 0, 0, 0)),
    "leaf nan, float64": ("leaves[2]", with_leaf(MASS, 0, NAN)),
    "leaf infinite as float32": ("leaves[2]", with_leaf(MASS, 0, -float.fromhex("0x1.ffffffp127"))),
    "category negative": ("leaves[3]", with_leaf(ROOM, 0, -1)),
    "category too large": ("leaves[3]", with_leaf(ROOM, 5, 0)),
    "bool of 2": ("leaves[4]", with_leaf(DOOR, 2, 0)),
    "rewards missing": ("rewards", with_field("rewards", b"")),
    "rewards too short": ("rewards", with_field("rewards", bytes(7))),
    "reward nan": ("rewards[1]", with_field("rewards", np.array([0, NAN], "<f4").tobytes())),
    "reward infinite": ("rewards[0]", with_field("rewards", np.array([INF, 0], "<f4").tobytes())),
    "terminated missing": ("terminated", with_field("terminated", b"")),
    "truncated too long": ("truncated", with_field("truncated", bytes(3))),
    "is_first missing": ("is_first", with_field("is_first", b"")),
    "interrupted too short": ("interrupted", with_field("interrupted", b"\0")),
    "flag of 2": ("truncated[1]", with_field("truncated", b"\0\2")),
    "episode of an unknown environment": ("episodes.env", lambda message: message.episodes.add(env=2)),
    "episodes too many": ("episodes", lambda message: message.episodes.extend([pb.Episode()] * 3)),
    "episode nan": ("episodes.episode_return", lambda message: message.episodes.add(episode_return=NAN)),
}


@pytest.mark.parametrize("rule", BROKEN_MESSAGES)
def test_a_step_that_breaks_one_rule_is_refused_by_the_name_of_the_field(pool: PlayingPool, rule: str) -> None:
    field, change = BROKEN_MESSAGES[rule]
    stream = legal_stream("first", "inner", "inner")
    change(stream[-1].observations)

    code, details = ending(pool, stream)

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith(f"observations.{field}")
    with pytest.raises(ViolationError, match=field.partition("[")[0]):
        check_stream(stream)


def test_no_agent_waits_unless_another_one_has_its_turn(pool: PlayingPool) -> None:
    stream = legal_stream("first", "inner", "waiting", takes_turns=True)
    stream[-1].observations.waiting = b"\1\1"
    stream[-1].observations.rewards = bytes(8)

    code, details = ending(pool, stream)

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("observations.waiting[0]: it is no agent's turn")
    with pytest.raises(ViolationError, match="no agent's turn"):
        check_stream(stream)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (pb.ActRequest(hello=HELLO), "second hello"),
        (pb.ActRequest(), "no payload"),
        (pb.ActRequest(bye=pb.Bye(detail="x" * 201)), "bye.detail"),
    ],
)
def test_what_is_no_step_and_no_bye_is_refused(pool: PlayingPool, message: pb.ActRequest, named: str) -> None:
    stream = [*legal_stream("first", "inner"), message]
    code, details = ending(pool, stream)
    assert (code, named in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    with pytest.raises(ViolationError, match=named):
        check_stream(stream)
