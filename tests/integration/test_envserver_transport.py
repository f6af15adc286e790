"""A session's stream keeps its promises over every transport, and the right transport is chosen."""

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from types import ModuleType

import grpc
import pytest

from harness.ports import free_address
from kubebeast_common.settings import ConfigError
from kubebeast_envserver.config import parse
from kubebeast_envserver.stream.codec import ProtocolError, make_bye
from kubebeast_envserver.stream.connection import MAX_RECEIVED_BYTES, DisconnectedError, RefusedError, parse_response
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.transport import choose_transport, open_stream
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import TIMEOUT_S, StreamThread, learner, next_log, watched_log

pytestmark = pytest.mark.usefixtures("transport")

HELLO = pb.ActRequest(hello=pb.Hello()).SerializeToString()
LONG_WELCOME = pb.ActResponse(welcome=pb.Welcome(run_id="long enough to be compressed " * 100)).SerializeToString()

Talk = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


@contextlib.contextmanager
def raw_learner(talk: Talk, compression: grpc.Compression = grpc.Compression.NoCompression) -> Iterator[str]:
    """Yields the address of a learner that sends and receives raw bytes."""
    options = [("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(2), options=options, compression=compression)
    act = grpc.stream_stream_rpc_method_handler(talk, None, None)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("kubebeast.v1.ActorPool", {"Act": act})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def saying(*messages: bytes) -> Talk:
    return lambda requests, context: iter(messages)


def test_messages_come_in_order_until_the_learner_ends_the_stream() -> None:
    with raw_learner(saying(b"first", b"second")) as address, open_stream(address) as stream:
        assert [stream.receive() for _ in range(4)] == [b"first", b"second", None, None]


@contextlib.contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """Yields a socket that takes connections, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_S)
        yield server, f"127.0.0.1:{server.getsockname()[1]}"


def first_line(server: socket.socket, address: str, use_proxy: bool | None) -> str:
    """Returns the first line of a stream to the address, at the server that it connects to."""

    def receive() -> None:
        with contextlib.suppress(DisconnectedError):
            stream.receive()

    with open_stream(address, use_proxy=use_proxy) as stream:
        receiver = threading.Thread(target=receive)  # the call makes progress in the receiving thread
        receiver.start()
        with server.accept()[0] as connection:
            connection.settimeout(TIMEOUT_S)
            line = connection.recv(4096).partition(b"\r\n")[0].decode()
        stream.cancel()
        receiver.join(TIMEOUT_S)
    return line


@pytest.mark.parametrize(
    ("address", "use_proxy"), [("learner.example.com:4431", None), ("pong-learner.training.svc:4431", True)]
)
def test_a_proxy_of_the_environment_is_asked_for_the_learner(
    address: str, use_proxy: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as (proxy, where):
        monkeypatch.setenv("http_proxy", f"http://{where}")
        assert first_line(proxy, address, use_proxy) == f"CONNECT {address} HTTP/1.1"


@pytest.mark.parametrize("use_proxy", [None, False])
def test_a_learner_near_by_is_dialed_without_the_proxy(use_proxy: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as (learner_itself, address), listening() as (_, proxy):
        monkeypatch.setenv("http_proxy", f"http://{proxy}")
        assert first_line(learner_itself, address, use_proxy) == "PRI * HTTP/2.0"


def test_requests_arrive_in_order_and_what_follows_the_last_is_not_sent() -> None:
    heard: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()

    def hear(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        heard.put(list(requests))
        return iter(())

    requests = [str(i).encode() for i in range(20)]
    with raw_learner(hear) as address, open_stream(address) as stream:
        for request in requests[:-2]:
            stream.send(request)
        stream.send(requests[-2], is_last=True)
        stream.send(requests[-1])
        assert stream.receive() is None
    assert heard.get(timeout=TIMEOUT_S) == requests[:-1]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.UNAVAILABLE, DisconnectedError),
        (grpc.StatusCode.OUT_OF_RANGE, DisconnectedError),
        (grpc.StatusCode.FAILED_PRECONDITION, RefusedError),
    ],
)
def test_a_status_is_an_error_with_its_code_and_its_words(code: grpc.StatusCode, error: type[Exception]) -> None:
    def refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.abort(code, "größer\x07 than the limit")

    with (
        raw_learner(refuse) as address,
        open_stream(address) as stream,
        pytest.raises(error, match=f"^{code.name}: größer. than the limit$") as caught,
    ):
        stream.receive()
    assert caught.value.code is code  # type: ignore[attr-defined]


def test_a_message_above_the_limit_is_not_received() -> None:
    too_large = bytes(MAX_RECEIVED_BYTES + 1)
    with (
        raw_learner(saying(too_large)) as address,
        open_stream(address) as stream,
        pytest.raises(DisconnectedError, match="RESOURCE_EXHAUSTED"),
    ):
        stream.receive()


@pytest.mark.parametrize(
    ("message", "compression"),
    [(b"\xff" * 100, grpc.Compression.NoCompression), (LONG_WELCOME, grpc.Compression.Gzip)],
)
def test_bytes_that_are_no_message_are_an_error(message: bytes, compression: grpc.Compression) -> None:
    with (
        raw_learner(saying(message), compression) as address,
        open_stream(address) as stream,
        pytest.raises(ProtocolError, match="malformed, or compressed by gRPC"),
    ):
        parse_response(stream.receive() or b"")


def test_nobody_at_the_address_is_told_where_it_is_received() -> None:
    with open_stream(free_address()) as stream, pytest.raises(DisconnectedError, match="UNAVAILABLE"):
        stream.receive()


def test_another_thread_ends_the_wait() -> None:
    with learner() as server, open_stream(server.address) as stream:
        stream.send(HELLO)
        assert stream.receive() is not None
        threading.Timer(0.0, stream.cancel).start()
        with pytest.raises(DisconnectedError, match="CANCELLED"):
            stream.receive()


def test_a_signal_is_handled_during_the_wait_and_may_send() -> None:
    with learner() as server, open_stream(server.address) as stream:
        stream.send(HELLO)
        assert stream.receive() is not None
        bye = make_bye(pb.Bye.REASON_SHUTDOWN)
        last = bye.SerializeToString()
        before = signal.signal(signal.SIGUSR1, lambda signum, frame: stream.send(last, is_last=True))
        try:
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            assert stream.receive() is None
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert server.next("bye") == bye.bye


def test_a_dialer_says_what_carries_its_streams(transport: str) -> None:
    with watched_log() as log, learner() as server, StreamThread(env="Mock", address=server.address):
        assert next_log(log, "dialing the learner").endswith(f"by {transport}")
        server.next("observations")


def test_a_transport_is_never_replaced_where_it_was_asked_for(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    assert choose_transport("grpcio") == "grpcio"
    if transport == "native":
        assert choose_transport("native") == "native"
        return
    with pytest.raises(ConfigError, match="transport = 'native': kubebeast-native cannot be used"):
        choose_transport("native")
    with StreamThread(env="Mock", address=free_address(), transport="native") as stream:
        assert stream.join() == ExitCode.USAGE
    assert "transport = 'native'" in caplog.text


class Broken(ModuleType):
    def __getattr__(self, name: str) -> object:
        raise ImportError("libgrpc++.so.1.51: cannot open shared object file")


def test_a_core_that_cannot_be_loaded_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "kubebeast_native", Broken("kubebeast_native"))
    assert choose_transport("auto") == "grpcio"
    assert "libgrpc++.so.1.51" in caplog.text


def test_listening_is_grpcios() -> None:
    with pytest.raises(ConfigError, match="transport = 'native': cannot listen: use auto or grpcio"):
        parse(["--env", "Mock", "--listen", "[::]:1", "--transport", "native"], {})
