"""Probes and scrapes are answered over real sockets, and no client keeps others from being answered."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.parser import text_string_to_metric_families

from kubebeast_common import http_endpoint
from kubebeast_common.access import addresses
from kubebeast_common.access.addresses import has_ipv6
from kubebeast_common.http_endpoint import MAX_CONNECTIONS, HttpEndpoint

PATIENCE_S = 60.0


class Probes:
    """Probes with settable answers that can be held back."""

    health = readiness = ""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()

    def ask_health(self) -> str:
        assert self.may_answer.wait(PATIENCE_S)
        return self.health

    def ask_readiness(self) -> str:
        return self.readiness


@pytest.fixture
def probes() -> Probes:
    return Probes()


@pytest.fixture
def endpoint(probes: Probes) -> Iterator[HttpEndpoint]:
    registry = CollectorRegistry()
    Gauge("answer", "To everything.", registry=registry).set(42)
    with HttpEndpoint(
        "127.0.0.1:0", health=probes.ask_health, readiness=probes.ask_readiness, registry=registry
    ) as endpoint:
        yield endpoint


def ask(endpoint: HttpEndpoint, path: str, method: str = "GET", host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, endpoint.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def dial(endpoint: HttpEndpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", endpoint.port), PATIENCE_S)


def is_cut_off(connection: socket.socket) -> bool:
    """Waits until the endpoint ends the connection; returns True if that happens without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(("path", "field"), [("/healthz", "health"), ("/readyz", "readiness")])
def test_a_probe_is_200_until_something_is_wrong_and_503_with_the_reason_then(
    path: str, field: str, endpoint: HttpEndpoint, probes: Probes
) -> None:
    assert ask(endpoint, path) == (200, "ok\n")
    setattr(probes, field, "the tap is dry")
    assert ask(endpoint, path) == (503, "the tap is dry\n")
    other = "/readyz" if path == "/healthz" else "/healthz"
    assert ask(endpoint, other) == (200, "ok\n")


def test_metrics_are_those_of_the_registry(endpoint: HttpEndpoint) -> None:
    status, text = ask(endpoint, "/metrics?name=answer")
    (family,) = text_string_to_metric_families(text)
    assert (status, family.name, family.documentation) == (200, "answer", "To everything.")
    assert [sample.value for sample in family.samples] == [42.0]


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics2", "/../etc/passwd", "//[", "*"])
def test_there_is_nothing_else(path: str, endpoint: HttpEndpoint) -> None:
    assert ask(endpoint, path)[0] == 404


def test_head_is_get_without_a_body(endpoint: HttpEndpoint, probes: Probes) -> None:
    assert ask(endpoint, "/healthz", "HEAD") == (200, "")
    probes.health = "broken"
    assert ask(endpoint, "/healthz", "HEAD") == (503, "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(method: str, endpoint: HttpEndpoint) -> None:
    assert ask(endpoint, "/healthz", method)[0] == 501


@pytest.mark.parametrize("sent", [b"\x00\xff\x80\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000])
def test_what_is_not_http_harms_nobody(sent: bytes, endpoint: HttpEndpoint) -> None:
    with dial(endpoint) as connection:
        with contextlib.suppress(OSError):  # it may be refused before all data is sent
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        while not is_cut_off(connection):
            pass
    assert ask(endpoint, "/healthz") == (200, "ok\n")


def test_silent_clients_are_cut_off_by_newer_ones_and_never_keep_a_probe_waiting(endpoint: HttpEndpoint) -> None:
    silent = [dial(endpoint) for _ in range(MAX_CONNECTIONS)]
    assert ask(endpoint, "/healthz") == (200, "ok\n")
    assert is_cut_off(silent[0])
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.0\r\nAccept: text"])
def test_half_a_request_is_not_waited_for(sent: bytes, endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_endpoint, "CONNECTION_S", 0.2)
    with dial(endpoint) as connection:
        connection.sendall(sent)
        assert is_cut_off(connection)


def test_a_client_that_does_not_read_is_not_waited_for(endpoint: HttpEndpoint, probes: Probes) -> None:
    probes.health = "x" * (64 << 20)
    others = threading.enumerate()  # of servers of other tests
    with dial(endpoint) as idle:
        idle.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.0 503"
        assert ask(endpoint, "/readyz") == (200, "ok\n")
        endpoint.close()
    for thread in set(threading.enumerate()).difference(others):
        if "process_request_thread" in thread.name:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def test_a_client_that_waits_is_not_in_the_way_of_another(endpoint: HttpEndpoint, probes: Probes) -> None:
    probes.may_answer.clear()
    with dial(endpoint) as waiting:
        waiting.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert ask(endpoint, "/readyz") == (200, "ok\n")
        probes.may_answer.set()
        assert waiting.recv(12) == b"HTTP/1.0 200"


def test_a_client_is_not_cut_off_for_an_answer_that_takes_long_to_compute(
    endpoint: HttpEndpoint, probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_endpoint, "CONNECTION_S", 0.2)
    probes.may_answer.clear()
    with dial(endpoint) as waiting, dial(endpoint) as silent:
        waiting.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert is_cut_off(silent)  # which came later
        probes.may_answer.set()
        assert waiting.recv(12) == b"HTTP/1.0 200"


def test_closing_frees_the_port_and_cuts_everybody_off(endpoint: HttpEndpoint) -> None:
    with dial(endpoint) as connection:
        assert ask(endpoint, "/healthz") == (200, "ok\n")  # the first connection is accepted by then
        endpoint.close()
        assert is_cut_off(connection)
    registry = CollectorRegistry()
    with HttpEndpoint(f"127.0.0.1:{endpoint.port}", health=str, readiness=str, registry=registry) as next_one:
        assert ask(next_one, "/healthz") == (200, "ok\n")


def test_an_address_in_use_is_refused(endpoint: HttpEndpoint) -> None:
    with pytest.raises(OSError, match="in use"):
        HttpEndpoint(f"127.0.0.1:{endpoint.port}", health=str, readiness=str, registry=CollectorRegistry())


def test_every_address_is_of_both_families(probes: Probes) -> None:
    registry = CollectorRegistry()
    with HttpEndpoint(
        "[::]:0", health=probes.ask_health, readiness=probes.ask_readiness, registry=registry
    ) as endpoint:
        assert ask(endpoint, "/healthz", host="127.0.0.1") == (200, "ok\n")
        if has_ipv6():
            assert ask(endpoint, "/healthz", host="::1") == (200, "ok\n")


def test_without_ipv6_probes_are_answered_by_ipv4(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "has_ipv6", lambda: False)
    registry = CollectorRegistry()
    with HttpEndpoint(
        "[::]:0", health=probes.ask_health, readiness=probes.ask_readiness, registry=registry
    ) as endpoint:
        assert ask(endpoint, "/healthz") == (200, "ok\n")
