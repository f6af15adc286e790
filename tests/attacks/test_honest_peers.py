"""Honest peers commit no offense, however often they connect, probe and cancel."""

from collections.abc import Iterator

import grpc
import pytest

from kubebeast_conformance.wire import http2
from kubebeast_conformance.wire.http2 import DATA, END_HEADERS, END_STREAM, HEADERS, HEALTH_CHECK, frame, head, message
from kubebeast_conformance.wire.methods import ACT
from tests.attacks.siege import TOKEN, Siege

NUM_PROBES = 30


@pytest.fixture(scope="module", params=["plain", "tls"])
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    """A siege in which a second offense blocks a host."""
    with Siege(tmp_path_factory.mktemp("strict"), "--max-offences=1", tls=request.param == "tls") as siege:
        yield siege


def check(stream: int) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, head(HEALTH_CHECK)) + frame(DATA, END_STREAM, stream, message(b""))


def test_probes_on_connections_of_their_own_are_answered(strict: Siege) -> None:
    for _ in range(NUM_PROBES):
        with strict.connect() as connection:
            connection.send(http2.OPENING + check(1))
            connection.read_to_end_of(1)
    assert strict.refused() == 0


def test_probes_on_one_connection_are_answered(strict: Siege) -> None:
    with strict.connect() as connection:
        connection.send(http2.OPENING)
        for stream in range(1, 20, 2):
            connection.send(check(stream))
            connection.read_to_end_of(stream)
    assert strict.refused() == 0


def test_a_probe_whose_deadline_has_passed_is_no_offence(strict: Siege) -> None:
    for _ in range(3):
        with strict.connect() as connection:
            connection.send(
                http2.OPENING + frame(HEADERS, END_HEADERS, 1, head(HEALTH_CHECK, [("grpc-timeout", "1n")]))
            )
            connection.read_to_end_of(1)
    assert strict.refused() == 0


def test_streams_may_be_opened_and_cancelled_on_one_connection(strict: Siege) -> None:
    with strict.access.channel(strict.learner.address) as channel:
        act = channel.stream_stream(ACT, request_serializer=bytes, response_deserializer=bytes)
        for _ in range(5):
            call = act(iter([]), metadata=(("authorization", f"Bearer {TOKEN}"),))
            assert call.code() is grpc.StatusCode.OK
    assert strict.refused() == 0
