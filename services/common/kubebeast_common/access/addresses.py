"""Parsing of addresses: their hosts, ports and reachability."""

import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_PORT = 65535
EVERYWHERE, EVERYWHERE_IPV4 = "[::]", "0.0.0.0"
"""Hosts to listen on: all addresses of the machine, of both families or only IPv4."""
_PLACE = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:,/\[\]]+):(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?")


def is_local(address: str) -> bool:
    """Returns True if only this machine can reach the address."""
    return address.startswith(("unix:", "127.", "localhost:", "[::1]:"))


def may_need_proxy(address: str) -> bool:
    """Returns True if a proxy may be useful to reach the address: False for this machine and Kubernetes Services.

    A proxy outside the cluster cannot resolve the names of Services. MayNeedProxy in the client library is the same.
    """
    host = address.rpartition(":")[0].removesuffix(".").lower()
    return not is_local(address) and not host.endswith((".svc", ".svc.cluster.local"))


def absolute_socket(address: str) -> str:
    """Makes the path of a "unix:path" address absolute; returns other addresses unchanged."""
    path = address.removeprefix("unix:")
    return f"unix:{Path(path).absolute()}" if path not in ("", address) and not path.startswith("/") else address


def is_host_port(text: str) -> bool:
    """Returns True if `text` is a host, or an IPv6 address in brackets, and a port; port 0 means any free port."""
    match = _PLACE.fullmatch(text)
    return match is not None and match["last"] is None and int(match["first"]) <= MAX_PORT


def is_host_ports(text: str) -> bool:
    """Returns True if `text` is a host, or an IPv6 address in brackets, and a port or an ascending range of ports."""
    match = _PLACE.fullmatch(text)
    return match is not None and 1 <= int(match["first"]) <= int(match["last"] or match["first"]) <= MAX_PORT


def split_host_ports(text: str) -> tuple[str, range]:
    """Splits "host:port" or "host:first-last" into the host, without brackets, and the ports."""
    host, _, ports = text.rpartition(":")
    first, _, last = ports.partition("-")
    return host.strip("[]"), range(int(first), int(last or first) + 1)


def join_host_ports(host: str, ports: Sequence[int]) -> Iterator[str]:
    """Returns "host:port" for each port, with brackets if the host is an IPv6 address."""
    where = f"[{host}]" if ":" in host else host
    return (f"{where}:{port}" for port in ports)


def bindable(address: str) -> str:
    """Returns the address to bind for "host:port". On a machine without IPv6, "[::]" becomes "0.0.0.0"."""
    host, _, port = address.rpartition(":")
    return f"{EVERYWHERE_IPV4}:{port}" if host == EVERYWHERE and not has_ipv6() else address


def has_ipv6() -> bool:
    """Returns True if this machine or container can listen on IPv6 addresses, which a kernel may have disabled."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def resolve(host: str) -> Sequence[str]:
    """Resolves a host to its IPv4 addresses, or to IPv6 if it has no others: both would list the same machines twice.

    Blocks. Raises OSError if there is no address, and UnicodeError if the host is no valid name.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    for family in (socket.AF_INET, socket.AF_INET6):
        if addresses := [str(where[0]) for kind, _, _, _, where in found if kind == family]:
            return addresses
    raise OSError("no address")
