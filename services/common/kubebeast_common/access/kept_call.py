"""A call in both directions that a thread keeps up, such as a registration at a broker."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

import grpc

from kubebeast_common.access.addresses import may_need_proxy
from kubebeast_common.access.grpc_tls import channel_credentials
from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError, authorization
from kubebeast_common.backoff import Backoff, Repetitions
from kubebeast_common.text import printable

LONGEST_DELAY_S = 2.0
"""Limit of the delay between dials."""
CLOSE_S = 2.0
"""Time for the other side to end the call at its planned end."""
_CONNECT_MS = 5_000
_MAX_MESSAGE_BYTES = 64 << 10

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """The other side of a call, and the access to it."""

    name: str
    """Name for the log, such as "the broker"."""
    address: str
    method: str
    """Path of the method: "/package.Service/Method"."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    """Files of TLS; without authorities the call is not encrypted."""
    tls_server_name: str = ""
    """Name that its certificate must have; empty: the dialed host."""
    token_file: str = ""
    use_proxy: bool | None = None
    """True if gRPC asks the HTTP proxy of the environment to connect; None follows may_need_proxy."""


class KeptCall:
    """A call that is dialed again whenever it ends, from `start` to `close`. Thread-safe.

    The first message of each call is the state of this side. The state is sent again if it changes, and has the last
    word: it is looked at once more at the end.
    """

    def __init__(
        self, service: Service, *, state: Callable[[], bytes], take: Callable[[bytes], None], refresh_s: float
    ) -> None:
        """Prepares the call; `start` begins to dial.

        Args:
            state: Returns the state of this side; called from other threads, and must not block.
            take: Called for each message of the other side, from another thread.
            refresh_s: Interval of looks at the state besides those that `look` requests.
        """
        self._service = service
        self._state = state
        self._take = take
        self._refresh_s = refresh_s
        self._lock = threading.RLock()
        self._looks: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """Requests to the present call: True for a look at the state, False for the end of this side."""
        self._is_closing = threading.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kept-call", daemon=True)

    @property
    def is_up(self) -> bool:
        """True if the other side has answered the present call."""
        return self._is_up.is_set()

    def start(self) -> None:
        self._thread.start()

    def look(self) -> None:
        """Sends the state soon if it has changed."""
        with self._lock:
            self._looks.put(True)

    @property
    def is_ending(self) -> bool:
        """True after `end`."""
        return self._is_closing.is_set()

    def end(self) -> None:
        """Ends the call as planned, after a last look at the state. Does not block."""
        with self._lock:
            self._is_closing.set()
            self._looks.put(False)

    def close(self) -> None:
        """Ends the call, and blocks until the other side has ended it, too, for at most CLOSE_S. Idempotent."""
        self.end()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        backoff, repetitions, name = Backoff(limit_s=LONGEST_DELAY_S), Repetitions(), self._service.name
        while not self._is_closing.is_set():
            try:
                with self._open() as responses:
                    for response in responses:
                        if not self._is_up.is_set():
                            logger.info("connected to %s at %s", name, self._service.address)
                            self._is_up.set()
                            backoff.reset()
                        self._take(response)
                reason = "it has ended the call"
            except grpc.RpcError as error:
                reason = f"{error.code().name}: {printable(error.details() or '', 1000)}"
            except (TlsError, TokenFileError) as error:
                reason = str(error)
            self._is_up.clear()
            if not self._is_closing.is_set() and repetitions.is_news(reason):
                logger.warning("no connection to %s at %s: %s", name, self._service.address, reason)
            self._is_closing.wait(backoff.next_delay_s())

    @contextlib.contextmanager
    def _open(self) -> Iterator[Iterator[bytes]]:
        """Opens a call and yields its responses. Raises TlsError and TokenFileError."""
        metadata = authorization(self._service.token_file)
        with self._channel() as channel:
            with self._lock:
                looks = self._looks = queue.SimpleQueue()
                if self._is_closing.is_set():
                    looks.put(False)
            call = channel.stream_stream(self._service.method, None, None)
            try:
                yield cast("Iterator[bytes]", call(self._requests(looks), metadata=metadata))
            finally:
                looks.put(False)

    def _requests(self, looks: "queue.SimpleQueue[bool]") -> Iterator[bytes]:
        """Yields the state at first and when it has changed, until the end of this side."""
        sent = self._state()
        yield sent
        has_ended = False
        while not has_ended:
            with contextlib.suppress(queue.Empty):
                has_ended = not looks.get(timeout=self._refresh_s)
            state = self._state()
            if state != sent:
                sent = state
                yield state

    def _channel(self) -> grpc.Channel:
        service = self._service
        needs_proxy = may_need_proxy(service.address) if service.use_proxy is None else service.use_proxy
        options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.per_message_decompression", 0),
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 5_000),
            ("grpc.http2.ping_timeout_ms", 5_000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", int(needs_proxy)),
        ]
        if not service.tls.ca:
            return grpc.insecure_channel(service.address, options)
        if service.tls_server_name:
            options.append(("grpc.ssl_target_name_override", service.tls_server_name))
        return grpc.secure_channel(service.address, channel_credentials(service.tls), options)
