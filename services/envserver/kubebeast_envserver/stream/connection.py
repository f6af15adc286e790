"""A stream of the wire contract, as far as it does not matter who dialed it; and dialing it."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import grpc
from google.protobuf.message import DecodeError

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_common.access.token_file import authorization
from kubebeast_common.text import printable
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.tls import channel_credentials
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAX_RECEIVED_BYTES = 64 << 20
"""Of one message."""
COMMON_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_receive_message_length", MAX_RECEIVED_BYTES),
    ("grpc.per_message_decompression", 0),  # inflating takes up to the limit above for a few kilobytes, token or not
    ("grpc.keepalive_time_ms", 20_000),  # more than the 10 s that the learner allows between pings
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]
"""Channel options of both directions (https://grpc.github.io/grpc/core/group__grpc__arg__keys.html)."""
CONNECT_TIMEOUT_MS = 5_000
"""Longest that one try to connect may take, TLS included: an address that swallows packets must not cost 20 s."""

FINAL_CODES = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""The learner will not take this env-server however often they connect."""

RUN_FINISHED = grpc.StatusCode.OUT_OF_RANGE
"""The learner's run is over. It takes no streams, but another run may follow at the same address."""

_CODES = {code.value[0]: code for code in grpc.StatusCode if code is not grpc.StatusCode.OK}


class DisconnectedError(Exception):
    """The stream ended without being asked to; another one may go better."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        super().__init__(reason)
        self.code = code


class RefusedError(Exception):
    """The learner refuses this env-server; another stream cannot go better."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Stream:
    """An open stream, whoever dialed it. Its owner puts None into `requests` when done with it."""

    requests: queue.SimpleQueue[pb.ActRequest | None]
    """To the learner. put is reentrant and never blocks; None ends the requests, what follows it is never sent."""
    responses: Iterator[pb.ActResponse]
    """From the learner; next blocks. Ends where the learner ended the stream; grpc.RpcError where that is an error.

    ProtocolError where its bytes are no message.
    """
    cancel: Callable[[], object]
    """Ends the stream at once and wakes who waits for a response; from any thread."""


@contextlib.contextmanager
def open_stream(
    address: str, tls: TlsFiles | None = None, tls_server_name: str = "", token_file: str = ""
) -> Iterator[Stream]:
    """A stream to the learner at `address`, on a connection of its own; cancelled at the end of the context.

    Each call reads the files and resolves the learner's name. Raises TlsError or TokenFileError; that the learner
    cannot be reached shows in the responses.
    """
    metadata = authorization(token_file)
    with _open_channel(address, tls, tls_server_name) as channel:
        requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        act = channel.stream_stream("/kubebeast.v1.ActorPool/Act", pb.ActRequest.SerializeToString, None)
        call = act(iter(requests.get, None), metadata=metadata)
        try:
            yield Stream(requests, parsed(cast("Iterator[bytes]", call)), call.cancel)
        finally:
            requests.put(None)


def parsed(responses: Iterator[bytes]) -> Iterator[pb.ActResponse]:
    """The messages of a learner. What gRPC compressed is none: it is not inflated."""
    for response in responses:
        try:
            message = pb.ActResponse.FromString(response)
        except DecodeError as error:
            raise ProtocolError("ActResponse: malformed, or compressed by gRPC") from error
        yield message


def _open_channel(address: str, tls: TlsFiles | None, tls_server_name: str) -> grpc.Channel:
    options = [
        *COMMON_OPTIONS,
        ("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0 if is_local(address) else 1),
    ]
    if not tls:
        return grpc.insecure_channel(address, options)
    if tls_server_name:
        options.append(("grpc.ssl_target_name_override", tls_server_name))
    return grpc.secure_channel(address, channel_credentials(tls), options)


def stream_error(error: grpc.RpcError) -> DisconnectedError | RefusedError:
    """What the end of a stream means, from its status. Where the learner dialed there is none."""
    if not hasattr(error, "code"):
        return DisconnectedError("the connection broke")
    return _ended_with(error.code(), error.details())


def end_error(end: pb.End) -> DisconnectedError | RefusedError:
    """What an End means. Raises ProtocolError where its code is no error."""
    if end.code not in _CODES:
        raise ProtocolError(f"End.code is {end.code}, which is no error code of gRPC")
    return _ended_with(_CODES[end.code], end.detail)


def code_name(error: Exception) -> str:
    """One of GRPC_CODES: the status that ended or prevented a stream; of files that cannot be used, unavailable."""
    code = grpc.StatusCode.UNAVAILABLE
    if isinstance(error, (DisconnectedError, RefusedError)):
        code = error.code
    elif isinstance(error, ProtocolError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    return code.name.lower()


def _ended_with(code: grpc.StatusCode, details: str | None) -> DisconnectedError | RefusedError:
    text = f"{code.name}: {printable(details or '', 1000)}"
    return RefusedError(text, code) if code in FINAL_CODES else DisconnectedError(text, code)
