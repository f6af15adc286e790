"""A proxy before an S3 server that fails as networks and stores do."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from harness.processes.s3_server import S3Server

Fault = Literal["none", "503", "cut", "lost answer", "hang", "403"]
"""cut: the connection ends in the middle of the request. lost answer: it ends after the store has done what was asked.
hang: nothing happens until the proxy is closed.
"""


class FaultyProxy:
    """A proxy that asks `choose` for the fault of each request, by method and path. A context manager."""

    def __init__(self, server: S3Server, choose: Callable[[str, str], Fault]) -> None:
        self.num_faults = 0
        self.choose = choose
        """May be replaced at any time."""
        self._closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, server.port))
        self._http.daemon_threads = True
        self.server = S3Server(self._http.server_address[1])
        """The server as clients of the proxy reach it."""

    def fault(self, method: str, path: str) -> Fault:
        fault = self.choose(method, path)
        self.num_faults += fault != "none"
        return fault

    def wait_closed(self) -> None:
        self._closed.wait()

    def __enter__(self) -> "FaultyProxy":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()


def _handler(proxy: FaultyProxy, port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            fault = proxy.fault(self.command, self.path)
            length = int(self.headers.get("Content-Length", 0))
            if fault == "cut":
                self.rfile.read(length // 2)
                return self._end()
            body = self.rfile.read(length)
            if fault in ("503", "403"):
                return self._send(int(fault), [], b"<Error><Code>Injected</Code><Message>injected</Message></Error>")
            if fault == "hang":
                proxy.wait_closed()
                return self._end()
            upstream = http.client.HTTPConnection("127.0.0.1", port)
            try:
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                content = answer.read()
            finally:
                upstream.close()
            if fault == "lost answer":
                return self._end()
            return self._send(answer.status, answer.getheaders(), content)

        def _send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            given = {name.lower() for name, _ in headers}
            for name, value in headers:
                if name.lower() not in ("connection", "transfer-encoding", "server", "date"):
                    self.send_header(name, value)
            if "content-length" not in given:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _end(self) -> None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *arguments: object) -> None: ...

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - the names of http.server

    return Handler
