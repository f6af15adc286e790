"""Floods: data that a peer without a token sends repeatedly on one connection."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from kubebeast_conformance.wire import http2
from kubebeast_conformance.wire.http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    HEALTH_CHECK,
    MAX_FRAME_BYTES,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ClosedError,
    RawConnection,
    frame,
    head,
    integer,
    literal,
    message,
)
from kubebeast_conformance.wire.methods import ACT

Piece = Callable[[int], bytes]
"""Returns the n-th repetition."""
_CANCEL = b"\0\0\0\x08"
MOST_BYTES = 64 << 20
"""Bytes far beyond the needs of a connection without a stream."""
_BATCH_BYTES = 1 << 14
"""Bytes sent at once."""
_HUGE = 3 << 30
_STREAMS = 1 << 30
"""Number of stream ids of HTTP/2."""


@dataclass(frozen=True, slots=True)
class Flood:
    """A flood of repeated data."""

    kind: Literal["headers", "calls", "frames"]
    name: str
    piece: Piece
    first: bytes = b""
    """Bytes before the repetitions, after the opening."""

    def endless(self) -> Iterator[bytes]:
        """Yields the data after the opening in batches."""
        if self.first:
            yield self.first
        numbers = itertools.count()
        while True:
            batch = b""
            while len(batch) < _BATCH_BYTES:
                batch += self.piece(next(numbers) % _STREAMS)
            yield batch


def run(connection: RawConnection, flood: Flood, most_bytes: int) -> int:
    """Floods until the other side ends the connection; returns the number of bytes sent.

    After most_bytes it stops and leaves the connection open. Raises TimeoutError if the other side does not read.
    """
    sent = 0
    try:
        for data in itertools.chain([http2.OPENING], flood.endless()):
            if sent >= most_bytes:
                break
            connection.send(data)
            sent += len(data)
    except ClosedError:
        pass
    return sent


def _same(data: bytes) -> Piece:
    return lambda number: data


def _calls(path: str, *, reset: bool = False, body: bytes = b"") -> Piece:
    block = head(path)

    def piece(number: int) -> bytes:
        stream = 2 * number + 1
        end = frame(RST_STREAM, 0, stream, _CANCEL) if reset else frame(DATA, END_STREAM, stream, message(body))
        return frame(HEADERS, END_HEADERS, stream, block) + end

    return piece


def _open_calls(path: str) -> Piece:
    block = head(path)
    return lambda number: frame(HEADERS, END_HEADERS, 2 * number + 1, block)


_BEGUN = frame(HEADERS, 0, 1, head())
_CALLED = frame(HEADERS, END_HEADERS, 1, head())
_CONTINUED = frame(CONTINUATION, 0, 1, b"a" * MAX_FRAME_BYTES)
_HUGE_LITERAL = b"\0" + integer(5) + b"x-big" + integer(_HUGE)

FLOODS = (
    Flood("headers", "huge literal", _same(_CONTINUED), frame(HEADERS, 0, 1, head() + _HUGE_LITERAL)),
    Flood("headers", "huge name", _same(_CONTINUED), frame(HEADERS, 0, 1, head() + b"\0" + integer(_HUGE))),
    Flood(
        "headers",
        "tiny continuations",
        _same(frame(CONTINUATION, 0, 1, b"a")),
        frame(HEADERS, 0, 1, head() + _HUGE_LITERAL),
    ),
    Flood("headers", "endless headers", _same(frame(CONTINUATION, 0, 1, literal("x-big", "a" * 4000))), _BEGUN),
    Flood("headers", "indexed headers", _same(frame(CONTINUATION, 0, 1, b"\x82" * 4096)), _BEGUN),
    Flood("headers", "empty continuations", _same(frame(CONTINUATION, 0, 1)), _BEGUN),
    Flood("calls", "rapid reset of Act", _calls(ACT, reset=True)),
    Flood("calls", "rapid reset of Check", _calls(HEALTH_CHECK, reset=True)),
    Flood("calls", "rapid reset of an unknown method", _calls("/a/b", reset=True)),
    Flood("calls", "health checks", _calls(HEALTH_CHECK)),
    Flood("calls", "health checks of a long name", _calls(HEALTH_CHECK, body=b"\x0a\x7f" + b"a" * 127)),
    Flood("calls", "unknown methods", _calls("/a/b")),
    Flood("calls", "Act without a token", _calls(ACT)),
    Flood("calls", "Act without an end", _open_calls(ACT)),
    Flood("calls", "Check without an end", _open_calls(HEALTH_CHECK)),
    Flood("frames", "pings", _same(frame(PING, 0, 0, b"12345678"))),
    Flood("frames", "answers to pings", _same(frame(PING, ACK, 0, b"12345678"))),
    Flood("frames", "settings", _same(frame(SETTINGS, 0, 0))),
    Flood("frames", "large settings", _same(frame(SETTINGS, 0, 0, b"\0\x04\0\0\xff\xff" * 100))),
    Flood("frames", "acknowledged settings", _same(frame(SETTINGS, ACK, 0))),
    Flood("frames", "goaway", _same(frame(GOAWAY, 0, 0, bytes(8)))),
    Flood("frames", "goaway with a reason", _same(frame(GOAWAY, 0, 0, bytes(8) + b"a" * 8000))),
    Flood("frames", "window updates", _same(frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"))),
    Flood("frames", "window updates of a call", _same(frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\x01")), _CALLED),
    Flood("frames", "priorities", _same(frame(PRIORITY, 0, 1, b"\0\0\0\0\x10"))),
    Flood("frames", "resets of nothing", _same(frame(RST_STREAM, 0, 1, _CANCEL))),
    Flood("frames", "unknown frames", _same(frame(77, 0, 0, b"x" * 16))),
    Flood("frames", "empty data", _same(frame(DATA, 0, 1)), _CALLED),
    Flood("frames", "data of no call", _same(frame(DATA, 0, 1, b"x" * 100))),
    Flood("frames", "messages of a call", _same(frame(DATA, 0, 1, message(b"x" * 1000))), _CALLED),
    Flood("frames", "padding", _same(frame(DATA, 0x8, 1, b"\xff" + bytes(255))), _CALLED),
)
"""Each is cheap for its sender, and expensive for a server without limits."""
BY_NAME = {flood.name: flood for flood in FLOODS}
