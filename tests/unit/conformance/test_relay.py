"""A relay forwards bytes, records keepalives and, after a cut, the peer that gives a connection up."""

import socket
from collections.abc import Iterator

import pytest

from kubebeast_conformance.wire import relay as relays
from kubebeast_conformance.wire.frames import PREFACE
from kubebeast_conformance.wire.relay import Relay

PATIENCE_S = 20.0
PING = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + bytes(8)
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.fixture
def target() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_S)
        yield listening


def connected(relay: Relay, target: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Returns the dialing side and the target's side of a new connection."""
    host, _, port = relay.address.rpartition(":")
    near = socket.create_connection((host, int(port)), PATIENCE_S)
    far, _ = target.accept()
    far.settimeout(PATIENCE_S)
    return near, far


def opened(target: socket.socket) -> Relay:
    return Relay("127.0.0.1:0", f"127.0.0.1:{target.getsockname()[1]}", "who dials")


def test_bytes_go_both_ways(target: socket.socket) -> None:
    with opened(target) as relay:
        near, far = connected(relay, target)
        with near, far:
            near.sendall(b"there")
            assert far.recv(5, socket.MSG_WAITALL) == b"there"
            far.sendall(b"back")
            assert near.recv(4, socket.MSG_WAITALL) == b"back"
            near.shutdown(socket.SHUT_WR)
            assert far.recv(1) == b""


def test_pings_in_a_silence_are_keepalives(target: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(target) as relay:
        near, far = connected(relay, target)
        with near, far:
            near.sendall(PREFACE + SETTINGS + PING)  # a ping that measures the bandwidth
            assert far.recv(len(PREFACE), socket.MSG_WAITALL) == PREFACE
            far.recv(len(SETTINGS + PING), socket.MSG_WAITALL)
            monkeypatch.setattr(relays, "_SETTLED_S", 0.0)
            near.sendall(PING)
            assert len(relay.pings(1, PATIENCE_S)) == 1
            assert len(relay.pings(2, 0.0)) == 1


def test_after_a_cut_nothing_comes_through_and_who_gives_up_is_seen(target: socket.socket) -> None:
    with opened(target) as relay:
        near, far = connected(relay, target)
        with far:
            with near:
                relay.cut()
                near.sendall(b"lost")
                far.setblocking(False)
                assert not relay.is_given_up(0.0)
                with pytest.raises(BlockingIOError):
                    far.recv(1)
            assert relay.is_given_up(PATIENCE_S)


def test_the_end_of_the_relay_ends_its_connections(target: socket.socket) -> None:
    with opened(target) as relay:
        near, far = connected(relay, target)
    with near, far:
        assert near.recv(1) == far.recv(1) == b""
