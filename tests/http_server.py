"""An HTTP server on a port of this machine for the duration of a test."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Protocol, TypeVar


class ServerState(Protocol):
    """The shared state of the handlers."""

    @property
    def stopped(self) -> threading.Event:
        """Set when the server ends; wakes handlers that never answer."""


State = TypeVar("State", bound=ServerState)


class StatefulServer(ThreadingHTTPServer, Generic[State]):
    daemon_threads = True
    state: State


class JsonHandler(BaseHTTPRequestHandler):
    """A handler that answers in JSON, as a Kubernetes API server does, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def send(self, content: object) -> None:
        self.answer(200, json.dumps(content), "application/json")

    def fail(self, status: int, message: str) -> None:
        """Sends a Status object."""
        self.answer(status, json.dumps({"kind": "Status", "message": message, "code": status}), "application/json")

    def answer(self, status: int, body: str, content_type: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler], make_state: Callable[[str], State]) -> Iterator[State]:
    """Serves requests in a thread until the end of the context.

    make_state: called with the URL of the server before the first request.
    """
    server: StatefulServer[State] = StatefulServer(("127.0.0.1", 0), handler)
    server.state = make_state(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.state
    finally:
        server.state.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
