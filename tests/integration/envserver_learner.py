"""A learner's side of the contract in plain grpcio, and ways to run an env-server against it."""

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
from kubebeast_envserver.shutdown import Shutdown
from kubebeast_envserver.worker import ExitCode, run_stream
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc as pb_grpc

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0


class FakeLearner(pb_grpc.ActorPoolServicer):
    """Records every request and answers each Observations with zeros; `port` 0 picks a free one."""

    def __init__(self, port: int = 0, refuse: tuple[grpc.StatusCode, str] | None = None) -> None:
        self.received: queue.SimpleQueue[pb.ActRequest] = queue.SimpleQueue()
        self.refuse = refuse
        self.answer: Callable[[pb.Hello, pb.Observations], pb.ActResponse | None] = zeros
        """None leaves the env-server waiting."""
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        pb_grpc.add_ActorPoolServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def Act(self, request_iterator: Any, context: Any) -> Iterator[pb.ActResponse]:  # noqa: N802
        first = next(request_iterator)
        self.received.put(first)
        if self.refuse is not None:
            context.abort(*self.refuse)
        yield pb.ActResponse(welcome=pb.Welcome(run_id="test", compression=first.hello.offered_compression))
        for request in request_iterator:
            self.received.put(request)
            if request.HasField("bye"):
                return
            response = self.answer(first.hello, request.observations)
            if response is not None:
                yield response

    def next(self, kind: str) -> Any:
        """The payload of the next request of that kind; others are skipped."""
        while True:
            request = self.received.get(timeout=TIMEOUT_S)
            if request.HasField(kind):
                return getattr(request, kind)

    def stop(self) -> None:
        self._server.stop(grace=None).wait()


def zeros(hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
    leaves = [bytes(np.dtype(dtype_name(leaf)).itemsize * rows(hello, leaf)) for leaf in hello.action]
    return pb.ActResponse(actions=pb.Actions(step=observations.step, leaves=leaves))


def rows(hello: pb.Hello, leaf: pb.LeafSpec) -> int:
    return int(hello.num_envs * np.prod(leaf.shape, dtype=np.int64))


def dtype_name(leaf: pb.LeafSpec) -> str:
    return pb.DType.Name(leaf.dtype).removeprefix("DTYPE_").lower()


def frames(hello: pb.Hello, observations: pb.Observations, index: int) -> Any:
    """The frames of one leaf as they travelled, [num_envs + (stack - 1) * is_first rows, *shape]."""
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
        self.exit_code: ExitCode | None = None
        self._config = EnvServerConfig(**options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.exit_code = run_stream(self._config, 0, self.shutdown)

    def join(self) -> ExitCode | None:
        self._thread.join(TIMEOUT_S)
        return self.exit_code

    def __enter__(self) -> "StreamThread":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown.request()
        self.join()


def spawn(*flags: str) -> subprocess.Popen[str]:
    """`python -m kubebeast_envserver` as a process; its log is JSON on stderr."""
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
