"""Hosts of peers are read from the texts of gRPC."""

import pytest

from kubebeast_broker.peer import host_of


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:192.0.2.1:50000", "192.0.2.1"),
        ("ipv6:%5B2001:db8::1%5D:50000", "[2001:db8::1]"),
        ("ipv6:[::ffff:192.0.2.1]:50000", "192.0.2.1"),
    ],
)
def test_the_host_of_a_peer_is_one_of_an_address(peer: str, host: str) -> None:
    assert host_of(peer) == host


def test_a_peer_without_a_host_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        host_of("unix:/tmp/socket")
