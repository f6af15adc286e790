"""A stream over grpcio: for both directions, and on every machine."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from typing import cast

import grpc

from kubebeast_common.access.addresses import may_need_proxy
from kubebeast_common.access.grpc_tls import channel_credentials
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.access.token_file import authorization
from kubebeast_envserver.stream import connection
from kubebeast_envserver.stream.connection import DisconnectedError, RefusedError, status_error

COMMON_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_receive_message_length", connection.MAX_RECEIVED_BYTES),
    ("grpc.per_message_decompression", 0),  # a few kilobytes could inflate to the limit above, with or without a token
    ("grpc.keepalive_time_ms", 20_000),  # rule T5: at least 10 s
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # by default 60 s, which newer gRPC also waits for a keepalive's answer
    ("grpc.http2.max_pings_without_data", 0),
]
"""Channel options of both directions (https://grpc.github.io/grpc/core/group__grpc__arg__keys.html)."""


class GrpcioStream:
    """A Stream over grpcio. Its owner calls `end_requests` at the end of its use."""

    def __init__(
        self,
        requests: "queue.SimpleQueue[bytes | None]",
        responses: Iterator[bytes],
        cancel: Callable[[], object],
    ) -> None:
        """gRPC's thread takes `requests` and sends them, until None."""
        self._requests = requests
        self._responses = responses
        self.cancel = cancel

    def send(self, request: bytes, *, is_last: bool = False) -> None:
        self._requests.put(request)
        if is_last:
            self.end_requests()

    def end_requests(self) -> None:
        self._requests.put(None)

    def receive(self) -> bytes | None:
        try:
            return next(self._responses, None)
        except grpc.RpcError as error:
            raise stream_error(error) from error


@contextlib.contextmanager
def open_stream(
    address: str, tls: TlsFiles | None, tls_server_name: str, token_file: str, use_proxy: bool | None
) -> Iterator[GrpcioStream]:
    """Opens a stream like transport.open_stream."""
    metadata = authorization(token_file)
    with _open_channel(address, tls, tls_server_name, use_proxy) as channel:
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        act = channel.stream_stream("/kubebeast.v1.ActorPool/Act", None, None)
        call = act(iter(requests.get, None), metadata=metadata)
        stream = GrpcioStream(requests, cast("Iterator[bytes]", call), call.cancel)
        try:
            yield stream
        finally:
            stream.end_requests()


def _open_channel(address: str, tls: TlsFiles | None, tls_server_name: str, use_proxy: bool | None) -> grpc.Channel:
    options = [
        *COMMON_OPTIONS,
        ("grpc.min_reconnect_backoff_ms", connection.CONNECT_TIMEOUT_MS),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", int(may_need_proxy(address) if use_proxy is None else use_proxy)),
    ]
    if not tls:
        return grpc.insecure_channel(address, options)
    if tls_server_name:
        options.append(("grpc.ssl_target_name_override", tls_server_name))
    return grpc.secure_channel(address, channel_credentials(tls), options)


def stream_error(error: grpc.RpcError) -> DisconnectedError | RefusedError:
    """Returns the error for the end of a call. If the learner dialed, the call has no status."""
    if not hasattr(error, "code"):
        return DisconnectedError("the connection broke")
    return status_error(error.code().value[0], error.details() or "")
