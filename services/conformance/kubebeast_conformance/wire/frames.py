"""Minimal HTTP/2 for the detection of pings: frames without their contents (RFC 9113, sections 4.1 and 6.7)."""

from collections.abc import Iterator
from enum import Enum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""Bytes that the dialing side sends before the first frame."""
_HEADER_BYTES = 9
_PING, _ACK = 6, 1


class Frame(Enum):
    """Role of a frame in a keepalive."""

    PING = "ping"
    ANSWER = "answer"
    OTHER = "other"


class FrameReader:
    """A parser of one direction of a connection, fed in pieces of any size."""

    def __init__(self, *, with_preface: bool) -> None:
        self._to_skip = len(PREFACE) if with_preface else 0
        self._header = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields frames with headers that these bytes complete."""
        at = 0
        while at < len(data):
            skipped = min(self._to_skip, len(data) - at)
            self._to_skip -= skipped
            at += skipped
            missing = _HEADER_BYTES - len(self._header)
            self._header += data[at : at + missing]
            at = min(at + missing, len(data))
            if len(self._header) == _HEADER_BYTES:
                yield self._finish_header()

    def _finish_header(self) -> Frame:
        self._to_skip = int.from_bytes(self._header[:3])
        kind, flags = self._header[3], self._header[4]
        self._header = b""
        if kind != _PING:
            return Frame.OTHER
        return Frame.ANSWER if flags & _ACK else Frame.PING
