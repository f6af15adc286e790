"""Peers that break the contract are turned away with a reason, and the training beside them is not affected."""

import contextlib
import queue
import socket
from collections.abc import Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass

import grpc
import numpy as np
import pytest

from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc
from tests.integration import null_training
from tests.integration.null_training import NUM_ENVS, NullTraining, hello, observations
from tests.integration.raw_stream import CALL_TIMEOUT_S, converse


@dataclass(frozen=True)
class Attack:
    name: str
    messages: Sequence[pb.ActRequest | bytes]
    """Messages, sent one by one; from the second on each waits for the reply to the one before."""
    code: grpc.StatusCode
    reason: str
    """Part of the status text."""
    counted_as: str
    """The pool's counter that goes up by one."""


INVALID = grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
TIMEOUT = grpc.StatusCode.DEADLINE_EXCEEDED
FIRSTS = b"\1" * NUM_ENVS
GARBAGE = b"\xff" * 100
IMAGE = [pb.LeafSpec(path="image", dtype=pb.DTYPE_UINT8, shape=[84, 84])]
NAN_REWARDS = np.full(NUM_ENVS, np.nan, np.float32).tobytes()
INFINITE = np.array([[0] * 4, [0, 0, np.inf, 0]], np.float32).tobytes()
TOO_LONG = bytes(2 * null_training.MAX_MESSAGE_BYTES)


def refused(
    name: str, messages: Sequence[pb.ActRequest | bytes], reason: str, code: grpc.StatusCode = INVALID
) -> Attack:
    """An attack that is turned away in place of a Welcome."""
    return Attack(name, messages, code, reason, "streams_rejected")


def broken(name: str, messages: Sequence[pb.ActRequest | bytes], reason: str) -> Attack:
    """An attack that is welcomed, then breaks the contract."""
    return Attack(name, [hello(), *messages], INVALID, reason, "streams_ended_invalid")


def silent(name: str, messages: Sequence[pb.ActRequest | bytes], reason: str) -> Attack:
    """An attack that is welcomed, then sends nothing more."""
    return Attack(name, [hello(), *messages], TIMEOUT, reason, "streams_ended_timeout")


ATTACKS = [
    refused("garbage", [GARBAGE], "hello"),
    refused("empty message", [b""], "hello"),
    refused("torn hello", [hello().SerializeToString()[:-3]], "hello"),
    refused("observations before hello", [observations(0)], "hello"),
    refused("other version", [hello(protocol_version=99)], "protocol_version: 99", PRECONDITION),
    refused("other shape", [hello(observation=IMAGE)], '"image" uint8 [84, 84]', PRECONDITION),
    refused("no environments", [hello(num_envs=0)], "num_envs: 0"),
    refused("too many environments", [hello(num_envs=1_000_000)], "num_envs: 1000000"),
    refused("nameless", [hello(instance_id="")], "instance_id"),
    broken("second hello", [hello()], "second hello"),
    broken("garbage after hello", [GARBAGE], "malformed"),
    broken("step from nowhere", [observations(7, is_first=FIRSTS)], "step: 7"),
    broken("repeated step", [observations(0), observations(0)], "step: 0"),
    broken("short leaf", [observations(0, leaves=[b"\0"])], "leaves[0]"),
    broken("infinite observation", [observations(0, leaves=[INFINITE])], 'leaves[0] ("" float32 [4]): row 1 holds inf'),
    broken("no leaf", [observations(0, leaves=[])], "leaves: 0"),
    broken("flag that is no flag", [observations(0, terminated=b"\7" * NUM_ENVS)], "terminated[0]: 7"),
    broken("first row in an episode", [observations(0), observations(1, is_first=FIRSTS)], "is_first"),
    broken("nan reward", [observations(0), observations(1, rewards=NAN_REWARDS)], "rewards[0]: nan"),
    # gRPC itself ends this stream, before the pool sees the message.
    Attack(
        "message over the limit",
        [hello(), observations(0, leaves=[TOO_LONG])],
        EXHAUSTED,
        "larger than max",
        "streams_ended_disconnect",
    ),
]


SILENCES = [
    refused("silence", [], "no Hello", TIMEOUT),
    silent("silence after hello", [], "step 0"),
    silent("silence after step", [observations(0)], "step 1"),
]
PATIENCE_MS = int(1000 * CALL_TIMEOUT_S)
"""Timeout that no peer that sends exceeds, even on a busy machine."""


@pytest.fixture(scope="module")
def training() -> Iterator[NullTraining]:
    with NullTraining(handshake_timeout_ms=PATIENCE_MS, step_timeout_ms=PATIENCE_MS) as running:
        yield running


@pytest.fixture(scope="module")
def impatient_training() -> Iterator[NullTraining]:
    with NullTraining() as running:
        yield running


def assert_undisturbed(training: NullTraining) -> None:
    """Asserts that the healthy streams alone go on delivering, and that every step is accounted for."""
    training.wait_for_batches(2)
    training.wait_until(lambda: training.pool.stats()["streams"] == null_training.NUM_STREAMS)
    assert training.endings.empty()
    stats = training.pool.stats()
    dropped = stats["steps_dropped_partial"] + stats["steps_dropped_close"]
    assert stats["steps_sampled"] == stats["steps_delivered"] + dropped + stats["steps_in_flight"]


def name_of(attack: Attack) -> str:
    return attack.name.replace(" ", "-")


@pytest.mark.parametrize("attack", ATTACKS, ids=name_of)
def test_attack_is_turned_away_with_a_reason_and_disturbs_nobody(training: NullTraining, attack: Attack) -> None:
    assert_turned_away(training, attack)


@pytest.mark.parametrize("attack", SILENCES, ids=name_of)
def test_silence_is_ended_with_a_reason_and_disturbs_nobody(impatient_training: NullTraining, attack: Attack) -> None:
    assert_turned_away(impatient_training, attack)


def assert_turned_away(training: NullTraining, attack: Attack) -> None:
    count = training.pool.stats()[attack.counted_as]

    code, details = converse(training.address, attack.messages)

    assert code is attack.code, details
    assert attack.reason in details
    training.wait_until(lambda: training.pool.stats()[attack.counted_as] == count + 1)
    assert_undisturbed(training)


def test_attacks_at_the_same_time_are_turned_away_one_by_one(training: NullTraining) -> None:
    with futures.ThreadPoolExecutor(len(ATTACKS)) as attackers:
        endings = list(attackers.map(lambda attack: converse(training.address, attack.messages), ATTACKS))

    assert [code for code, _ in endings] == [attack.code for attack in ATTACKS]
    assert_undisturbed(training)


def test_connections_without_a_call_disturb_nobody(training: NullTraining) -> None:
    host, port = training.address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        for _ in range(32):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            # Half of the preface that opens a connection: RFC 9113, section 3.4.
            connection.sendall(b"PRI * HTTP/2.0\r\n")
        assert_undisturbed(training)


def test_clients_that_vanish_in_the_middle_disturb_nobody(training: NullTraining) -> None:
    for num_steps in range(8):
        messages = iter([hello(instance_id=f"vanishing-{num_steps}"), *map(observations, range(num_steps))])
        sent = queue.SimpleQueue[pb.ActRequest]()
        with grpc.insecure_channel(training.address) as channel:
            replies = iter(actor_pool_pb2_grpc.ActorPoolStub(channel).Act(iter(sent.get, None), timeout=CALL_TIMEOUT_S))
            for message in messages:
                sent.put(message)
                next(replies)

    assert_undisturbed(training)
