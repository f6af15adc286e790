"""A stream over kubebeast-native, at a fraction of grpcio's cost per message."""

import contextlib
from collections.abc import Iterator

from kubebeast_common.access.tls_files import TlsFiles, read_pem
from kubebeast_common.access.token_file import authorization
from kubebeast_envserver.stream import connection
from kubebeast_envserver.stream.connection import status_error
from kubebeast_native import ActCall


class NativeStream:
    """A Stream over kubebeast-native."""

    def __init__(self, call: ActCall) -> None:
        self._call = call
        self.cancel = call.cancel

    def send(self, request: bytes, *, is_last: bool = False) -> None:
        self._call.send(request, is_last=is_last)

    def receive(self) -> bytes | None:
        response = self._call.receive()
        if response is not None:
            return response
        code, details = self._call.status()
        if code:
            raise status_error(code, details)
        return None


@contextlib.contextmanager
def open_stream(
    address: str, tls: TlsFiles | None, tls_server_name: str, token_file: str, use_proxy: bool | None
) -> Iterator[NativeStream]:
    """Opens a stream like transport.open_stream."""
    pem = read_pem(tls or TlsFiles())
    call = ActCall(
        address,
        tls_ca=pem.ca or b"",
        tls_cert=pem.cert or b"",
        tls_key=pem.key or b"",
        tls_server_name=tls_server_name,
        authorization=dict(authorization(token_file)).get("authorization"),
        connect_timeout_ms=connection.CONNECT_TIMEOUT_MS,
        use_proxy=use_proxy,
    )
    try:
        yield NativeStream(call)
    finally:
        call.cancel()
