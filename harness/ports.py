"""Ports for servers that a test starts, or starts again, in other processes."""

import collections
import contextlib
import os
import secrets
import socket

LOWEST, HIGHEST = 12_000, 29_999
"""Below what Linux gives connections for their near ends, and Kubernetes its node ports: a port of the kernel's choice
may be taken by somebody's connection before the server binds it, or by that of a client which so dials itself.
"""
MOST_HELD = 100
"""Of the ports that this process was given; a test that has so many after it needs its own no more."""

_held: collections.deque[int] = collections.deque()
"""File descriptors of the sockets that keep them, oldest first."""


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody has on the loopback interface.

    From now on other processes that ask get others, whether a server is there already or not. Servers bind them with
    SO_REUSEADDR, as nearly all do; without one, whoever dials is refused.
    """
    while True:
        first = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 2 - count)
        with contextlib.ExitStack() as tried, contextlib.suppress(OSError):
            taken = [tried.enter_context(_take(port)) for port in range(first, first + count)]
            _held.extend(each.detach() for each in taken)
            while len(_held) > MOST_HELD:
                os.close(_held.popleft())
            return first


def free_port() -> int:
    return free_ports(1)


def free_address() -> str:
    """An address on which nobody listens."""
    return f"127.0.0.1:{free_port()}"


def _take(port: int) -> socket.socket:
    """Holds a port, for servers to share; OSError where anybody has it."""
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", port))
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not before: it would bind what others hold
    except OSError:
        taken.close()
        raise
    return taken
