"""Requests to metadata servers: no proxy, no redirect, a deadline, and a limit of the response's size."""

import http.client
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from kubebeast_learner.notices.notice import MAX_BYTES, NoticeError

DEADLINE_S = 3.0
"""Time from the connection to the last byte of the response, without the resolution of a name."""
_LATE = f"no whole response within {DEADLINE_S:g} s"


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


def request(url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Response:
    """Sends one request, and returns the response, of any status.

    Proxies of the environment are not used: the address of a metadata server exists on its node alone. Blocks for
    DEADLINE_S at most. Raises NoticeError if there is no whole response of at most MAX_BYTES by then.
    """
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    expired = threading.Event()
    deadline = time.monotonic() + DEADLINE_S
    with closing(connect(parts.hostname or "", parts.port, timeout=DEADLINE_S)) as connection:
        try:
            connection.connect()
            with _ending(connection.sock, deadline - time.monotonic(), expired):
                connection.request(method, target, headers=dict(headers or {}))
                with closing(connection.getresponse()) as response:
                    body = response.read(MAX_BYTES + 1)
                    num_missing = response.length or 0
        except (OSError, http.client.HTTPException) as error:
            is_late = expired.is_set() or isinstance(error, TimeoutError)
            reason = _LATE if is_late else str(error) or type(error).__name__
            raise NoticeError(f"{method} {url}: {reason}") from error
    if expired.is_set():
        raise NoticeError(f"{method} {url}: {_LATE}")
    if len(body) > MAX_BYTES:
        raise NoticeError(f"{method} {url}: the response is larger than {MAX_BYTES >> 10} KiB")
    if num_missing:
        raise NoticeError(f"{method} {url}: the response ends {num_missing} bytes too early")
    return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


@contextmanager
def _ending(connected: socket.socket, after_s: float, expired: threading.Event) -> Iterator[None]:
    """Ends the connection after a time, unless the context has ended.

    A timeout of a socket is that of a single read: a server that sends a byte now and then never exceeds it.
    """

    def end() -> None:
        expired.set()
        with suppress(OSError):  # the server may have ended it
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(after_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
