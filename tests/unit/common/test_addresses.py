"""Listening addresses fit the IP families of the machine, and addresses within the cluster need no proxy."""

import socket

import pytest

from kubebeast_common.access import addresses
from kubebeast_common.access.addresses import bindable, may_need_proxy


@pytest.mark.parametrize("address", ["[::]:4431", "0.0.0.0:4431", "127.0.0.1:0", "[::1]:0", "unix:/tmp/x"])
def test_with_ipv6_an_address_is_bound_as_it_is(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "has_ipv6", lambda: True)
    assert bindable(address) == address


def test_without_ipv6_every_address_is_every_ipv4_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> socket.socket:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    assert bindable("[::]:4431") == "0.0.0.0:4431"
    assert bindable("[::1]:4431") == "[::1]:4431"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1:4431", "localhost:4431", "[::1]:4431", "unix:/tmp/learner"),
        *("pong-learner.training.svc:4431", "pong-learner.training.svc.:4431"),
        *("pong-learner.training.svc.cluster.local:4431", "A.B.SVC.Cluster.Local:4431"),
    ],
)
def test_neither_this_machine_nor_a_service_of_the_cluster_needs_a_proxy(address: str) -> None:
    assert not may_need_proxy(address)


@pytest.mark.parametrize(
    "address",
    [
        *("learner.example.com:4431", "10.0.0.7:4431", "[2001:db8::1]:4431"),
        *("svc:4431", "learner.svc.example.com:4431"),
    ],
)
def test_a_learner_elsewhere_may_need_a_proxy(address: str) -> None:
    assert may_need_proxy(address)
