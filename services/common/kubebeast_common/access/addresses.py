"""What an address says: which hosts and ports it means, and who can reach it."""

import re
import socket
from collections.abc import Iterator, Sequence

MAX_PORT = 65535
_PLACE = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:,/\[\]]+):(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?")


def is_local(address: str) -> bool:
    """Whether nobody but this machine can reach the address."""
    return address.startswith(("unix:", "127.", "localhost:", "[::1]:"))


def is_host_port(text: str) -> bool:
    """Whether `text` names a host, or an IPv6 address in brackets, and a port; 0 leaves the choice to the system."""
    match = _PLACE.fullmatch(text)
    return match is not None and match["last"] is None and int(match["first"]) <= MAX_PORT


def is_host_ports(text: str) -> bool:
    """Whether `text` names a host, or an IPv6 address in brackets, and a port or a rising range of ports."""
    match = _PLACE.fullmatch(text)
    return match is not None and 1 <= int(match["first"]) <= int(match["last"] or match["first"]) <= MAX_PORT


def split_host_ports(text: str) -> tuple[str, range]:
    """The host, without brackets, and the ports of "host:port" or "host:first-last"."""
    host, _, ports = text.rpartition(":")
    first, _, last = ports.partition("-")
    return host.strip("[]"), range(int(first), int(last or first) + 1)


def join_host_ports(host: str, ports: Sequence[int]) -> Iterator[str]:
    """ "host:port" for every port, with brackets where the host is an IPv6 address."""
    where = f"[{host}]" if ":" in host else host
    return (f"{where}:{port}" for port in ports)


def resolve(host: str) -> Sequence[str]:
    """The host's IPv4 addresses, or its IPv6 ones where it has no other: both would be the same machines twice.

    Blocks. OSError where there are none, UnicodeError where it is no name.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    for family in (socket.AF_INET, socket.AF_INET6):
        if addresses := [str(where[0]) for kind, _, _, _, where in found if kind == family]:
            return addresses
    raise OSError("no address")
