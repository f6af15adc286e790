"""Connections that are silent, or slow on purpose, are closed in time, at every point of the protocol."""

from collections.abc import Callable

import pytest

from kubebeast_conformance.wire import http2
from kubebeast_conformance.wire.http2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    PING,
    SETTINGS,
    ClosedError,
    RawConnection,
    frame,
    head,
    literal,
    message,
)
from tests.attacks.siege import TOKEN, Siege

Bytes = Callable[[], bytes]
NUM_AT_ONCE = 40
_AUTHORIZED = head(more=[("authorization", f"Bearer {TOKEN}")])
BEGINNINGS = {
    "nothing": b"",
    "half a preface": http2.OPENING[:10],
    "the preface": http2.OPENING[:24],
    "half a frame": http2.OPENING + frame(SETTINGS, 0, 0, bytes(60))[:20],
    "the opening": http2.OPENING,
    "a ping": http2.OPENING + frame(PING, 0, 0, b"12345678"),
    "half of the headers": http2.OPENING + frame(HEADERS, 0, 1, head()),
    "half of a literal": http2.OPENING + frame(HEADERS, 0, 1, head() + literal("x", "y" * 100)[:50]),
    "more headers": http2.OPENING + frame(HEADERS, 0, 1, head()) + frame(CONTINUATION, 0, 1, literal("x", "y")),
}
"""First bytes of clients without a call."""
CALLS = {
    "a call without a token": http2.OPENING + frame(HEADERS, END_HEADERS, 1, head()),
    "a call": http2.OPENING + frame(HEADERS, END_HEADERS, 1, _AUTHORIZED),
    "half of a hello": http2.OPENING
    + frame(HEADERS, END_HEADERS, 1, _AUTHORIZED)
    + frame(DATA, 0, 1, message(bytes(1000))[:20]),
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=[name.replace(" ", "-") for name in BEGINNINGS])
def test_a_connection_without_a_call_is_closed_in_time(siege: Siege, beginning: bytes) -> None:
    before = siege.refused()
    with siege.nobody_suffers():
        try:
            with siege.connect() as connection:
                connection.send(beginning)
                assert connection.wait_closed()
        except ClosedError:
            pass
        siege.wait_until(lambda: siege.refused() > before)


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=[name.replace(" ", "-") for name in BEGINNINGS])
def test_many_silent_connections_keep_nobody_out(siege: Siege, beginning: bytes) -> None:
    connections: list[RawConnection] = []
    for _ in range(NUM_AT_ONCE):
        connections.append(siege.connect())
        connections[-1].send(beginning)
    accepted = siege.count("kubebeast_streams_accepted_total")
    with siege.env_server():
        siege.wait_until(lambda: siege.count("kubebeast_streams_accepted_total") > accepted)
    siege.wait_until(lambda: siege.count("kubebeast_streams") == 1)
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("beginning", CALLS.values(), ids=[name.replace(" ", "-") for name in CALLS])
def test_a_call_without_a_hello_is_ended_in_time(siege: Siege, beginning: bytes) -> None:
    with siege.nobody_suffers(), siege.connect() as connection:
        connection.send(beginning)
        connection.read_to_end_of(1)
