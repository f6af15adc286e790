"""A port that a test was given stays reserved until a server listens, and while one restarts."""

import socket

import pytest

from harness import ports


def test_a_port_is_given_once() -> None:
    first = ports.free_ports(2)
    for port in (first, first + 1):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))  # as free_ports does in any process


def test_servers_listen_on_a_port_that_is_held_one_after_the_other() -> None:
    address = ("127.0.0.1", ports.free_port())
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with socket.create_server(address) as server, socket.create_connection(address), server.accept()[0]:
            pass
