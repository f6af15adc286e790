"""HTTP/2 without validation: frames as bytes on a raw connection (RFC 9113), headers as literals (RFC 7541)."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from kubebeast_common.access.tls_files import read_pem
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.frames import PREFACE
from kubebeast_conformance.wire.methods import ACT

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
MAX_FRAME_BYTES = 16_384
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_READ_BYTES = 1 << 16
_HEAD_BYTES = 9
"""Length of a frame's header."""


class ClosedError(Exception):
    """The other side has ended the connection."""


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def integer(value: int, prefix_bits: int = 7, first: int = 0) -> bytes:
    """Encodes an integer with a prefix (RFC 7541, section 5.1). first has the bits above the prefix."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes((first | value,))
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def literal(name: str, value: str) -> bytes:
    """Encodes a header field without indexing and Huffman code (RFC 7541, section 6.2.2)."""
    return b"\0" + b"".join(integer(len(text)) + text.encode() for text in (name, value))


def head(path: str = ACT, more: Iterable[tuple[str, str]] = (), *, scheme: str = "http") -> bytes:
    """Returns the header block of a call."""
    fields = [
        (":method", "POST"),
        (":scheme", scheme),
        (":path", path),
        (":authority", "learner"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        *more,
    ]
    return b"".join(literal(name, value) for name, value in fields)


def message(body: bytes) -> bytes:
    """Returns a gRPC message without HTTP/2 frames."""
    return b"\0" + struct.pack(">I", len(body)) + body


OPENING = PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0)
"""First bytes of a client: preface, settings, and the acknowledgement of the server's settings in advance."""


class RawConnection:
    """A TCP connection, with TLS if `access` has it. A context manager, which closes it."""

    def __init__(
        self, address: str, access: Access | None = None, *, source: str = "", timeout_s: float = 30.0
    ) -> None:
        """Connects. source is the local address. Operations that block raise TimeoutError after timeout_s seconds.

        Raises OSError, TlsError, and ClosedError if the TLS handshake fails.
        """
        host, _, port = address.rpartition(":")
        local = (source, 0) if source else None
        plain = socket.create_connection((host.strip("[]"), int(port)), timeout_s, source_address=local)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = plain
        self._unparsed = b""
        if access is not None and access.tls:
            try:
                self.socket = _context(access).wrap_socket(plain, server_hostname=access.tls_server_name or host)
            except OSError as error:
                plain.close()
                raise ClosedError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Local address, "host:port"."""
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Blocks until the data is sent. Raises ClosedError, and TimeoutError if the other side does not read."""
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise ClosedError(str(error)) from error

    def read(self) -> bytes:
        """Returns the next bytes. Blocks. Raises ClosedError and TimeoutError."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise ClosedError(str(error)) from error
        if not data:
            raise ClosedError("end of stream")
        return data

    def read_frame(self) -> tuple[int, int, int, bytes]:
        """Returns type, flags, stream and body of the next frame. Blocks. Raises ClosedError and TimeoutError."""
        while len(self._unparsed) < (end := _HEAD_BYTES + int.from_bytes(self._unparsed[:3])):
            self._unparsed += self.read()
        kind, flags, stream = struct.unpack(">BBI", self._unparsed[3:_HEAD_BYTES])
        body, self._unparsed = self._unparsed[_HEAD_BYTES:end], self._unparsed[end:]
        return kind, flags, stream, body

    def read_to_end_of(self, stream: int) -> None:
        """Blocks until the other side has ended the stream. Raises ClosedError and TimeoutError."""
        while True:
            kind, flags, other, _ = self.read_frame()
            if other == stream and (kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM)):
                return

    def wait_closed(self) -> bool:
        """Reads until the connection is closed; returns False after timeout_s seconds without data."""
        with contextlib.suppress(ClosedError):
            try:
                while True:
                    self.read()
            except TimeoutError:
                return False
        return True


def _context(access: Access) -> ssl.SSLContext:
    read_pem(access.tls)  # raises a TlsError that names the file
    context = ssl.create_default_context(cafile=access.tls.ca or None)
    context.set_alpn_protocols(["h2"])
    if access.tls.cert:
        context.load_cert_chain(access.tls.cert, access.tls.key)
    return context
