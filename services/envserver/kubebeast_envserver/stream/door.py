"""Server for learners that dial in, its health service, and the door that admits one of them at a time."""

import logging
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn

import grpc

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.grpc_tls import server_credentials
from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError, refusal
from kubebeast_common.settings import ConfigError
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.stream.grpcio_stream import COMMON_OPTIONS, GrpcioStream

MAX_CALLS = 16
"""Concurrent calls: the one that plays and those that are being refused. gRPC itself refuses more."""

_OPTIONS = [
    *COMMON_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visit:
    """A learner that was admitted."""

    stream: GrpcioStream
    context: grpc.ServicerContext
    peer: str

    def end(self, code: grpc.StatusCode, details: str) -> None:
        """Sets the status with which the call will end."""
        self.context.set_code(code)
        self.context.set_details(details)


class Door:
    """Admission of one learner at a time, from gRPC's threads. The consumer of `visits` steps the environments."""

    def __init__(self, token_file: str) -> None:
        self._token_file = token_file
        self._taken = threading.Lock()
        self._num_refused = 0
        self.visits: queue.SimpleQueue[Visit | None] = queue.SimpleQueue()

    def wake(self) -> None:
        """Makes `visits` yield None; reentrant."""
        self.visits.put(None)

    def leave(self, visit: Visit) -> None:
        """Ends the visit; the next learner may enter."""
        visit.stream.end_requests()
        self._taken.release()

    def play(self, responses: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """Handles EnvServer.Play: hands the stream over. Refuses without the token, and while another learner is
        admitted.
        """
        try:
            reason = refusal(self._token_file, context.invocation_metadata())
        except TokenFileError as error:
            self._log_refusal(context, str(error))
            context.abort(grpc.StatusCode.UNAVAILABLE, "the env-server cannot read its token file")
        if reason is not None:
            self._refuse(context, grpc.StatusCode.UNAUTHENTICATED, reason)
        if not self._taken.acquire(blocking=False):
            self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "this env-server's stream is taken")
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        stream = GrpcioStream(requests, responses, context.cancel)
        # Any end of the call must free its thread, which waits for requests.
        if not context.add_callback(stream.end_requests):
            stream.end_requests()
        self.visits.put(Visit(stream, context, context.peer()))
        return iter(requests.get, None)

    def _refuse(self, context: grpc.ServicerContext, code: grpc.StatusCode, details: str) -> NoReturn:
        self._log_refusal(context, details)
        context.abort(code, details)

    def _log_refusal(self, context: grpc.ServicerContext, reason: str) -> None:
        self._num_refused += 1
        if self._num_refused & (self._num_refused - 1) == 0:  # 1, 2, 4, 8, ...: a flood stays a short log
            logger.warning("refused %d calls, the last one from %s: %s", self._num_refused, context.peer(), reason)


def open_server(config: EnvServerConfig, index: int, door: Door) -> grpc.Server:
    """Listens on port + index of `config.listen`, for calls to the door and health checks. Raises ConfigError."""
    host, _, port = config.listen.rpartition(":")
    address = f"{host}:{int(port) + index}"
    pool = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="listener")
    server = grpc.server(pool, [_play(door), _health()], options=_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
    try:
        if config.tls_cert:
            files = TlsFiles(config.tls_cert, config.tls_key, config.tls_ca)
            server.add_secure_port(address, server_credentials(files))
        else:
            server.add_insecure_port(address)
    except TlsError as error:
        raise ConfigError(str(error)) from error
    except RuntimeError as error:
        reason = "in use, or no address of this machine"
        raise ConfigError(f"listen = {config.listen!r}: {address} cannot be listened on: {reason}") from error
    server.start()
    logger.info("listening on %s", address)
    unset = [name for name in ("tls_cert", "token_file") if not getattr(config, name)]
    if unset and not is_local(address):
        logger.warning("others can read the traffic or play; not set: %s", " and ".join(unset))
    return server


def _play(door: Door) -> "grpc.GenericRpcHandler[bytes, bytes]":
    """Returns the handler of EnvServer.Play, without a parser: the session parses messages and reports their errors."""
    handler = grpc.stream_stream_rpc_method_handler(door.play)
    return grpc.method_handlers_generic_handler("kubebeast.v1.EnvServer", {"Play": handler})


def _health() -> "grpc.GenericRpcHandler[bytes, bytes]":
    """Returns the handler of Check of grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md).

    Its two messages have one field each, so they are compared and sent as bytes, without another dependency.
    """
    name = b"kubebeast.v1.EnvServer"
    known = (b"", bytes((0x0A, len(name))) + name)
    serving = b"\x08\x01"

    def check(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request not in known:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return serving

    return grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}
    )
