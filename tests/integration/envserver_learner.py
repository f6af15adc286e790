"""A learner's side of the contract in plain grpcio, and ways to run an env-server against it."""

import contextlib
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import lz4.block
import numpy as np

from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.process.worker import run_stream
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.shutdown import Shutdown
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc as pb_grpc

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300.0


Answer = Callable[[pb.Hello, pb.Observations], pb.ActResponse | None]


class Recorder:
    """Welcomes a stream, records every request and answers each Observations with zeros."""

    def __init__(self, minor: int = PROTOCOL_MINOR, answer: Answer | None = None) -> None:
        self.received: queue.SimpleQueue[pb.ActRequest] = queue.SimpleQueue()
        self.minor = minor
        self.answer: Answer = answer or zeros
        """Function that makes the answers; a result of None leaves the env-server waiting."""

    def talk(self, requests: Iterator[pb.ActRequest]) -> Iterator[pb.ActResponse]:
        """Yields the learner's side of a stream, until the Bye."""
        hello = next(requests).hello
        self.received.put(pb.ActRequest(hello=hello))
        yield self.welcome(hello)
        for request in requests:
            self.received.put(request)
            if request.HasField("bye"):
                return
            response = self.answer(hello, request.observations)
            if response is not None:
                yield response

    def welcome(self, hello: pb.Hello) -> pb.ActResponse:
        return pb.ActResponse(
            welcome=pb.Welcome(
                run_id="test",
                compression=hello.offered_compression,
                protocol_version=PROTOCOL_VERSION,
                protocol_minor=self.minor,
            )
        )

    def next(self, kind: str) -> Any:
        """Returns the payload of the next request of that kind; others are skipped."""
        while True:
            request = self.received.get(timeout=TIMEOUT_S)
            if request.HasField(kind):
                return getattr(request, kind)


class FakeLearner(Recorder, pb_grpc.ActorPoolServicer):
    """A learner that listens; `port` 0 picks a free one. Without `credentials` there is no TLS, without `token` no
    check.
    """

    def __init__(
        self,
        port: int = 0,
        refuse: tuple[grpc.StatusCode, str] | None = None,
        credentials: grpc.ServerCredentials | None = None,
        token: str | None = None,
        minor: int = PROTOCOL_MINOR,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(minor, answer)
        self.refuse = refuse
        self.token = token
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        pb_grpc.add_ActorPoolServicer_to_server(self, self._server)
        target = f"127.0.0.1:{port}"
        if credentials is None:
            self.port = self._server.add_insecure_port(target)
        else:
            self.port = self._server.add_secure_port(target, credentials)
        self._server.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def Act(self, request_iterator: Any, context: Any) -> Iterator[pb.ActResponse]:  # noqa: N802
        if self.token is not None and ("authorization", f"Bearer {self.token}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the bearer token is wrong")
        if self.refuse is not None:
            self.received.put(next(request_iterator))
            context.abort(*self.refuse)
        yield from self.talk(request_iterator)

    def stop(self) -> None:
        self._server.stop(grace=None).wait()


class DialingLearner(Recorder):
    """A learner of that minor version that dials a listening env-server; in its context."""

    def __init__(
        self,
        address: str,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        minor: int = PROTOCOL_MINOR,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(minor, answer)
        options = [("grpc.use_local_subchannel_pool", 1)]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options)
        self.responses: queue.SimpleQueue[pb.ActResponse | None] = queue.SimpleQueue()
        """Responses to send; None half-closes."""
        metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()
        play = pb_grpc.EnvServerStub(self._channel).Play
        self.call: Any = play(iter(self.responses.get, None), metadata=metadata, wait_for_ready=credentials is None)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with contextlib.suppress(grpc.RpcError, StopIteration):
            for response in self.talk(self.call):
                self.responses.put(response)

    def status(self) -> tuple[grpc.StatusCode, str]:
        """Returns the status by which the env-server ended the call; blocks until then."""
        return self.call.code(), self.call.details()

    def __enter__(self) -> "DialingLearner":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.responses.put(None)
        self._channel.close()
        self._thread.join(TIMEOUT_S)


def zeros(hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
    leaves = [bytes(np.dtype(dtype_name(leaf)).itemsize * rows(hello, leaf)) for leaf in hello.action]
    return pb.ActResponse(actions=pb.Actions(step=observations.step, leaves=leaves))


def rows(hello: pb.Hello, leaf: pb.LeafSpec) -> int:
    return int(hello.num_envs * np.prod(leaf.shape, dtype=np.int64))


def dtype_name(leaf: pb.LeafSpec) -> str:
    return pb.DType.Name(leaf.dtype).removeprefix("DTYPE_").lower()


def frames(hello: pb.Hello, observations: pb.Observations, index: int) -> Any:
    """Returns the frames of one leaf as transferred, [num_envs + (stack - 1) * is_first rows, *shape]."""
    leaf, data = hello.observation[index], observations.leaves[index]
    is_first = np.frombuffer(observations.is_first, np.bool_)
    count = hello.num_envs + (max(leaf.frame_stack, 1) - 1) * int(is_first.sum())
    dtype = np.dtype(dtype_name(leaf))
    if hello.offered_compression[index] == pb.COMPRESSION_LZ4:
        size = count * int(np.prod(leaf.shape, dtype=np.int64)) * dtype.itemsize
        data = lz4.block.decompress(data, uncompressed_size=size)
        assert len(data) == size
    return np.frombuffer(data, dtype).reshape(count, *leaf.shape)


@contextmanager
def watched_log() -> Iterator["queue.SimpleQueue[str]"]:
    """Yields a queue of the messages that the env-server and what it shares with others log in this process."""
    messages: queue.SimpleQueue[str] = queue.SimpleQueue()
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: messages.put(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("kubebeast_envserver", "kubebeast_common")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
    try:
        yield messages
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


def next_log(messages: "queue.SimpleQueue[str]", text: str) -> str:
    """Waits for a message that holds the text; others are skipped."""
    while text not in (message := messages.get(timeout=TIMEOUT_S)):
        pass
    return message


@contextmanager
def learner(**options: Any) -> Iterator[FakeLearner]:
    server = FakeLearner(**options)
    try:
        yield server
    finally:
        server.stop()


class StreamThread:
    """run_stream in a thread of this process."""

    def __init__(self, **options: Any) -> None:
        self.shutdown = Shutdown()
        self.status = StreamStatus()
        self.exit_code: ExitCode | None = None
        self._config = EnvServerConfig(**options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.exit_code = run_stream(self._config, 0, self.shutdown, self.status)

    def join(self) -> ExitCode | None:
        self._thread.join(TIMEOUT_S)
        return self.exit_code

    def __enter__(self) -> "StreamThread":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown.request()
        self.join()


def spawn(*flags: str) -> subprocess.Popen[str]:
    """Starts `python -m kubebeast_envserver` as a process; its log is JSON on stderr."""
    command = [sys.executable, "-W", "error", "-m", "kubebeast_envserver", *flags]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@contextmanager
def running(*flags: str) -> Iterator[subprocess.Popen[str]]:
    process = spawn(*flags)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_log(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"the log ended without {text!r}")
