"""Ports for servers that a test starts, or starts again, in other processes."""

import contextlib
import secrets
import socket

LOWEST, HIGHEST = 12_000, 29_999
"""Below what Linux gives connections for their near ends, and Kubernetes its node ports: a port of the kernel's choice
may be taken by somebody's connection before the server binds it, or by that of a client which so dials itself.
"""


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody has on the loopback interface."""
    while True:
        first = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 2 - count)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def free_port() -> int:
    return free_ports(1)


def free_address() -> str:
    """An address on which nobody listens."""
    return f"127.0.0.1:{free_port()}"
