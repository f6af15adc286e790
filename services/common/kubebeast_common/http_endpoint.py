"""HTTP server for probes and scrapes: /healthz, /readyz, /metrics, and JSON pages.

Kubernetes requests the first two (https://kubernetes.io/docs/concepts/workloads/pods/probes/), Prometheus the third
(https://prometheus.io/docs/instrumenting/exposition_formats/). There is no encryption and no access control.
"""

import contextlib
import logging
import math
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from kubebeast_common.access.addresses import bindable

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 16
"""Maximum number of open connections. One more cuts off the oldest: an answered probe takes only milliseconds."""
CONNECTION_S = 10.0
"""Maximum duration in seconds of a request, and again of its response, even if the client is active. The time in which
the endpoint computes the response is not limited: on a busy machine the client, whose scrape_timeout is 10 s by
default (https://prometheus.io/docs/prometheus/latest/configuration/configuration/), decides how long it waits.
"""
POLL_S = 0.1
"""Interval in seconds at which the age of connections is checked."""

Probe = Callable[[], str]
"""Returns the problem, or "" if there is none. Called from threads of the endpoint; must not block."""
Page = Callable[[], bytes]
"""Returns one JSON value. Called from the same threads as a Probe; must not block."""


class HttpEndpoint:
    """An HTTP server that answers GET and HEAD in daemon threads until `close`. A context manager.

    /healthz and /readyz return 200, or 503 with the text of their probe. /metrics returns the registry in Prometheus's
    text format. Paths that are not pages return 404.
    """

    def __init__(
        self,
        address: str,
        *,
        health: Probe,
        readiness: Probe,
        registry: CollectorRegistry,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        """Starts the server.

        address is "host:port"; port 0 picks a free port, and "[::]" means all addresses, including IPv4. pages are
        keyed by path. Raises OSError if the address cannot be bound.
        """
        host, _, port = bindable(address).rpartition(":")
        probes = {"/healthz": health, "/readyz": readiness}
        self._server = _Server(host.strip("[]"), int(port), probes, registry, pages or {})
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_S,), name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening and cuts off open connections. Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "HttpEndpoint":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Server(socketserver.ThreadingTCPServer):
    # http.server.ThreadingHTTPServer resolves the host's name by DNS when it binds.
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 4 * MAX_CONNECTIONS

    def __init__(
        self, host: str, port: int, probes: Mapping[str, Probe], registry: CollectorRegistry, pages: Mapping[str, Page]
    ) -> None:
        self._probes = probes
        self._registry = registry
        self._pages = pages
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # connection to its deadline; the one to cut off first comes first
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__(where[:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            is_everywhere = self.server_address[0] == "::"
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if is_everywhere else 1)
        super().server_bind()

    def answer(self, request: socket.socket, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Returns status, content type and body for one path, after which the client has CONNECTION_S to read them."""
        self._set_deadline(request, math.inf)
        try:
            return self._answer(path)
        finally:
            self._set_deadline(request, time.monotonic() + CONNECTION_S)

    def _answer(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        text = "text/plain; charset=utf-8"
        if path == "/metrics":
            return HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self._registry)
        if path in self._pages:
            return HTTPStatus.OK, "application/json", self._pages[path]()
        if path not in self._probes:
            known = ", ".join([*self._probes, *self._pages])
            return HTTPStatus.NOT_FOUND, text, f"there are {known} and /metrics\n".encode()
        problem = self._probes[path]()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return status, text, f"{problem or 'ok'}\n".encode()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                self._cut(next(iter(self._open)))
            self._open[request] = time.monotonic() + CONNECTION_S
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Cuts off connections past their deadline. serve_forever calls it every POLL_S or more often."""
        with self._lock:
            for request in [each for each, deadline in self._open.items() if deadline <= time.monotonic()]:
                self._cut(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for request in list(self._open):
                self._cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that hangs up is no error
            logger.exception("an HTTP request failed")

    def _set_deadline(self, request: socket.socket, deadline: float) -> None:
        """Makes an open connection the last to cut off for a newer one."""
        with self._lock:
            if self._open.pop(request, None) is not None:
                self._open[request] = deadline

    def _cut(self, request: socket.socket) -> None:
        """Shuts a connection down, which wakes its thread to close it. The caller holds the lock."""
        del self._open[request]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "kubebeast"
    sys_version = ""

    def do_GET(self) -> None:
        status, content_type, body = self.server.answer(self.request, self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        pass
