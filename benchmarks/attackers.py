"""Peers without a token that flood a learner over many connections, in a separate process on a dedicated core."""

import contextlib
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

from benchmarks.processes import answering
from kubebeast_conformance.learner.floods import BY_NAME, Flood
from kubebeast_conformance.wire import http2

SILENT = "silence"
"""Name of the attack that sends only the opening of HTTP/2."""
_PAUSE_S = 0.01
"""Pause between the end of a connection and the next one."""
_LOOK_S = 0.05
_READ_BYTES = 1 << 16


@contextlib.contextmanager
def attacking(
    attack: str, address: str, source: str, connections: int, ca: str, core: int
) -> Iterator[Callable[[], int]]:
    """Runs the attack; once it has begun, yields a function that returns the number of its ended connections."""
    with answering(run, attack, address, source, connections, ca, core) as (_, count):
        yield count


def run(name: str, address: str, source: str, count: int, ca: str, core: int, channel: Connection) -> None:
    """Floods the learner until the other end of `channel` closes.

    Sends 0 once it has begun, and the number of ended connections in reply to each message.

    Args:
        name: Name of a flood, or SILENT.
        source: Local address of the connections.
        ca: PEM file of the learner's authority; "" without TLS.
    """
    os.sched_setaffinity(0, {core})
    host, _, port = address.rpartition(":")
    context = _context(ca) if ca else None
    flood = None if name == SILENT else BY_NAME[name]
    with _Attack((host, int(port)), source, count, flood, context) as attack:
        channel.send(0)
        with contextlib.suppress(EOFError):
            while True:
                attack.go_on(_LOOK_S)
                while channel.poll():
                    channel.recv()
                    channel.send(attack.num_ended)


class _Peer:
    """One connection, until it ends."""

    def __init__(self, connection: socket.socket, words: Iterator[bytes]) -> None:
        self.socket = connection
        self.words = words
        self.unsent = b""
        self.is_greeting = isinstance(connection, ssl.SSLSocket)
        self.is_mute = False

    def go_on(self) -> None:
        """Sends and reads as much as possible without blocking; raises OSError if the connection ends."""
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            if self.is_greeting:
                assert isinstance(self.socket, ssl.SSLSocket)
                self.socket.do_handshake()
                self.is_greeting = False
            self.unsent = self.unsent or next(self.words, b"")
            self.is_mute = not self.unsent
            if self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            if not self.is_greeting and not self.socket.recv(_READ_BYTES):
                raise ConnectionResetError


class _Attack:
    """The connections of an attack. A context manager: leaving closes them."""

    def __init__(
        self,
        address: tuple[str, int],
        source: str,
        count: int,
        flood: Flood | None,
        context: ssl.SSLContext | None,
    ) -> None:
        self.num_ended = 0
        self._address, self._source = address, source
        self._flood, self._context = flood, context
        self._selector = selectors.DefaultSelector()
        self._due = [0.0] * count
        """Times at which to open the missing connections, by time.monotonic."""

    def __enter__(self) -> "_Attack":
        return self

    def __exit__(self, *error: object) -> None:
        for key in [*self._selector.get_map().values()]:
            key.data.socket.close()
        self._selector.close()

    def go_on(self, seconds: float) -> None:
        """Continues the attack for `seconds`."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            missing = [due for due in self._due if due <= now]
            self._due = [due for due in self._due if due > now]
            for _ in missing:
                self._connect()
            for key, _ in self._selector.select(0.01):
                peer = key.data
                try:
                    peer.go_on()
                except OSError:
                    self._end(peer)
                    continue
                if peer.is_mute:  # everything is sent: it only waits for the end
                    self._selector.modify(peer.socket, selectors.EVENT_READ, peer)

    def _connect(self) -> None:
        connection = socket.socket()
        try:
            connection.bind((self._source, 0))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.connect(self._address)
            if self._context is not None:
                connection = self._context.wrap_socket(
                    connection, server_hostname=self._address[0], do_handshake_on_connect=False
                )
        except OSError:
            connection.close()
            self._due.append(time.monotonic() + _PAUSE_S)
            return
        words = iter([http2.OPENING]) if self._flood is None else self._floods(self._flood)
        self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, _Peer(connection, words))

    def _floods(self, flood: Flood) -> Iterator[bytes]:
        yield http2.OPENING
        yield from flood.endless()

    def _end(self, peer: _Peer) -> None:
        self._selector.unregister(peer.socket)
        peer.socket.close()
        self.num_ended += 1
        self._due.append(time.monotonic() + _PAUSE_S)


def _context(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    return context
