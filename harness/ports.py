"""Ports for servers that a test starts or restarts in other processes."""

import collections
import contextlib
import os
import secrets
import socket

LOWEST, HIGHEST = 12_000, 29_999
"""Range below Linux's ephemeral ports and Kubernetes' node ports: another connection may take an ephemeral port before
the server binds it, or a client that dials the port may be assigned it and so connect to itself.
"""
MOST_HELD = 100
"""Number of ports that this process keeps; older ones belong to tests that have ended."""

_held: collections.deque[int] = collections.deque()
"""File descriptors of the sockets that hold the ports, oldest first."""


def free_ports(count: int) -> int:
    """Reserves `count` consecutive free ports on the loopback interface and returns the first.

    From then on, other callers of this function get other ports, even before a server binds them. Servers must bind
    with SO_REUSEADDR, as nearly all do; until one does, connections are refused.
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
    """Returns a reserved address without a listener."""
    return f"127.0.0.1:{free_port()}"


def _take(port: int) -> socket.socket:
    """Binds a port so that servers can share it; raises OSError if it is in use."""
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", port))
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # before bind, it would share others' ports
    except OSError:
        taken.close()
        raise
    return taken
