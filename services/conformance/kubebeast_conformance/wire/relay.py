"""Relay between the suite and a peer that observes pings and the closing of dead connections, which gRPC hides."""

import contextlib
import socket
import threading
import time
from typing import Literal

from kubebeast_conformance.wire.frames import Frame, FrameReader

_PIECE_BYTES = 1 << 16
_LOOK_S = 0.1
_SETTLED_S = 1.0
"""Minimum time in seconds between other frames and a keepalive. An earlier ping may be a measurement of bandwidth."""


class Relay:
    """A forwarder of TCP connections to a target, without encryption. A context manager, which breaks them all."""

    def __init__(self, address: str, target: str, watched: Literal["who dials", "target"]) -> None:
        """Starts to listen; port 0 picks a free port. watched is the side with the recorded pings. Raises OSError."""
        self._target = _endpoint(target)
        self._watched = watched
        host, port = _endpoint(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, port), family=family)
        self.address = f"{address.rpartition(':')[0]}:{self._listening.getsockname()[1]}"
        self._changed = threading.Condition()
        self._pings: list[float] = []
        self._heard_at = 0.0
        self._is_cut = False
        self._has_ended = False
        self._sockets: list[socket.socket] = []
        self._is_closed = False
        self._listening.settimeout(_LOOK_S)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closed = True
        self._threads[0].join()
        self._listening.close()
        for connected in self._sockets:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)  # wakes the reading thread
        for thread in self._threads:
            thread.join()
        for connected in self._sockets:
            connected.close()

    def pings(self, count: int, timeout_s: float) -> list[float]:
        """Blocks until `count` keepalives have come, for at most timeout_s; returns their times by time.monotonic."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._pings) >= count, timeout_s)
            return self._pings.copy()

    def cut(self) -> None:
        """Stops forwarding and keeps all connections open."""
        with self._changed:
            self._is_cut, self._has_ended = True, False

    def is_given_up(self, timeout_s: float) -> bool:
        """Blocks until the peer closes a connection after `cut`, for at most timeout_s; returns True if it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_ended, timeout_s)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                near, _ = self._listening.accept()
            except TimeoutError:
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            self._sockets += [near, far]
            for way in ((near, far, True), (far, near, False)):
                thread = threading.Thread(target=self._forward, args=way, daemon=True)
                thread.start()
                self._threads.append(thread)

    def _forward(self, source: socket.socket, sink: socket.socket, of_dialler: bool) -> None:
        """Forwards one direction. of_dialler is True if the source is the dialing side."""
        is_watched = of_dialler == (self._watched == "who dials")
        frames = FrameReader(with_preface=of_dialler)
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE_BYTES):
                self._note([*frames.feed(data)], is_watched)
                if not self._is_cut:
                    sink.sendall(data)
        with self._changed:
            self._has_ended = self._has_ended or is_watched
            self._changed.notify_all()
        if not self._is_cut:
            for ended in (source, sink):
                with contextlib.suppress(OSError):
                    ended.shutdown(socket.SHUT_RDWR)

    def _note(self, frames: list[Frame], is_watched: bool) -> None:
        now = time.monotonic()
        with self._changed:
            if Frame.OTHER in frames:
                self._heard_at = now
            elif is_watched and Frame.PING in frames and now - self._heard_at >= _SETTLED_S:
                self._pings.append(now)
                self._changed.notify_all()


def _endpoint(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
