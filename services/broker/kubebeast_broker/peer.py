"""Hosts of peers, as gRPC names them."""

from ipaddress import IPv6Address, ip_address
from urllib.parse import unquote


def host_of(peer: str) -> str:
    """Returns the host of a peer as in an address: "192.0.2.1" or "[2001:db8::1]".

    Peers look like "ipv4:host:port" or "ipv6:%5Bhost%5D:port". Raises ValueError for others.
    """
    host = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
    address = ip_address(host)
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return f"[{address}]" if mapped is None else str(mapped)
    return str(address)
