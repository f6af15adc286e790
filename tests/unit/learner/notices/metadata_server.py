"""A server that responds to requests as a test scripts it."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from tests.http_server import StatefulServer, serving


class Asked(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    """By name in lower case."""


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


Respond = Callable[[Asked], Reply]


@dataclass
class MetadataServer:
    url: str
    respond: Respond
    stopped: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    server: StatefulServer[MetadataServer]

    def _respond(self) -> None:
        asked = Asked(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        self.server.state.asked.append(asked)
        reply = self.server.state.respond(asked)
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *arguments: object) -> None: ...

    do_GET = do_PUT = _respond  # noqa: N815 - the names of http.server


def metadata_server(respond: Respond) -> contextlib.AbstractContextManager[MetadataServer]:
    return serving(_Handler, lambda url: MetadataServer(url, respond))


@contextlib.contextmanager
def dripping_server() -> Iterator[str]:
    """Serves a response that never ends, a byte at a time; yields its URL."""

    class Handler(_Handler):
        def _respond(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.server.state.stopped.wait(0.01):
                    self.wfile.write(b".")

        do_GET = _respond  # noqa: N815

    with serving(Handler, lambda url: MetadataServer(url, lambda _: Reply())) as server:
        yield server.url
