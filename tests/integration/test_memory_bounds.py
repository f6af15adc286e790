"""No peer can exhaust the learner's memory, by messages that are large or only become large when inflated.

The pool under fire is alone in a process that has imported next to nothing, so that other changes of this process's
memory do not count: by other tests, or by a kernel that drops pages of libraries and reads them again.
"""

import multiprocessing
import queue
from collections.abc import Callable, Iterator
from concurrent import futures
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import pytest

import kubebeast_native as native
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc
from tests.integration.null_training import NullTraining, hello

BOMB_BYTES = 40 << 20
"""Inflated size of 40 kB of a compressed message: below the limit of NullTraining."""
WAIT_S = 300.0
WAIT_MS = 60_000
"""Long, as it takes a while to compress a bomb."""
SEND_ALL = [("grpc.max_send_message_length", -1)]
ADVICE = "switch the compression of the channel off"


def null_training() -> NullTraining:
    return NullTraining(handshake_timeout_ms=WAIT_MS, step_timeout_ms=WAIT_MS)


class PeakMemory:
    """Growth of this process's peak memory since this object was made."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM
        self._before = self._peak_bytes()

    def growth_bytes(self) -> int:
        return self._peak_bytes() - self._before

    def _peak_bytes(self) -> int:
        (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) << 10


def call_act(channel: Connection, address: str, compression: grpc.Compression, first_messages: list[bytes]) -> None:
    """A client that sends the messages and then zeros, each after a reply to the one before; reports its status."""
    requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    with grpc.insecure_channel(address, SEND_ALL, compression) as dialed:
        act = dialed.stream_stream("/kubebeast.v1.ActorPool/Act", bytes, bytes)
        call = act(iter(requests.get, None), timeout=WAIT_S)
        replies = iter(call)
        try:
            for message in first_messages:
                requests.put(message)
                next(replies)
            requests.put(bytes(BOMB_BYTES))
            next(replies)
        except grpc.RpcError:
            channel.send((call.code().name, call.details()))
        finally:
            requests.put(None)


def serve_play(channel: Connection) -> None:
    """An env-server that answers the first call with the bomb; reports its address, then the End that it receives."""

    def play(requests: Iterator[bytes], _: grpc.ServicerContext) -> Iterator[bytes]:
        yield bytes(BOMB_BYTES)
        for request in requests:
            end = pb.ActResponse.FromString(request).end
            channel.send((end.code, end.detail))

    server = grpc.server(futures.ThreadPoolExecutor(1), compression=grpc.Compression.Gzip)
    handler = grpc.stream_stream_rpc_method_handler(play, bytes, bytes)
    play_only = grpc.method_handlers_generic_handler("kubebeast.v1.EnvServer", {"Play": handler})
    server.add_generic_rpc_handlers((play_only,))
    channel.send(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    channel.recv()
    server.stop(0)


def train(channel: Connection) -> None:
    """A training with healthy streams; reports its address, on request the growth of its memory, and then True if these
    streams still play.
    """
    with null_training() as training:
        memory = PeakMemory()
        channel.send(training.address)
        channel.recv()
        channel.send(memory.growth_bytes())
        training.wait_for_batches(2)
        channel.send(training.endings.empty())
        channel.recv()


def dial(channel: Connection, address: str) -> None:
    """A pool that dials; reports the growth of its memory on request."""
    pool = native.ActorPool(address="", run_id="bombs", unroll_length=4, batch_size=2, handshake_timeout_ms=WAIT_MS)
    pool.start()
    memory = PeakMemory()
    pool.dial([(address, "")])
    channel.recv()
    channel.send(memory.growth_bytes())
    channel.recv()
    pool.close()


def listen(channel: Connection, max_transport_bytes: int) -> None:
    """A pool; reports its address, and on request the growth of its memory."""
    pool = native.ActorPool(
        address="127.0.0.1:0",
        run_id="bounds",
        unroll_length=4,
        batch_size=2,
        max_message_bytes=1 << 20,
        max_transport_bytes=max_transport_bytes,
        handshake_timeout_ms=WAIT_MS,
    )
    pool.start()
    memory = PeakMemory()
    channel.send(pool.address)
    channel.recv()
    channel.send(memory.growth_bytes())
    channel.recv()
    pool.close()


class Child:
    """Runs `function(channel, *args)` in a process of its own. A context manager: leaving ends the process."""

    def __init__(self, function: Callable[..., None], *args: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        self._process = context.Process(target=function, args=(theirs, *args), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        if kind is None:
            self.tell()
        else:
            self._process.kill()
        self._process.join()
        self._channel.close()

    def receive(self) -> Any:
        assert self._channel.poll(WAIT_S), "the child sends nothing"
        return self._channel.recv()

    def tell(self) -> None:
        """Lets the process continue."""
        self._channel.send(None)

    def growth_bytes(self) -> int:
        """Returns the growth of a learner's memory."""
        self.tell()
        growth: int = self.receive()
        return growth


@pytest.mark.parametrize("greets", [False, True], ids=["before-hello", "after-hello"])
def test_a_bomb_of_a_client_ends_its_stream_and_takes_no_memory(greets: bool) -> None:
    # The Hello is too small for gRPC to compress.
    first_messages = [hello().SerializeToString()] if greets else []
    with (
        Child(train) as learner,
        Child(call_act, learner.receive(), grpc.Compression.Gzip, first_messages) as client,
    ):
        code, details = client.receive()

        assert code == "INVALID_ARGUMENT"
        assert ADVICE in details
        assert learner.growth_bytes() < BOMB_BYTES / 2
        assert learner.receive(), "a healthy stream has ended"


def test_a_bomb_of_an_env_server_that_is_dialed_ends_its_stream_and_takes_no_memory() -> None:
    with Child(serve_play) as env_server, Child(dial, env_server.receive()) as learner:
        code, detail = env_server.receive()

        assert code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
        assert ADVICE in detail
        assert learner.growth_bytes() < BOMB_BYTES / 2


def test_an_honest_client_that_compresses_reads_what_to_do() -> None:
    first = hello(env_id="long enough to be worth compressing " * 100)
    with (
        null_training() as training,
        grpc.insecure_channel(training.address, compression=grpc.Compression.Gzip) as channel,
    ):
        act = actor_pool_pb2_grpc.ActorPoolStub(channel).Act
        with pytest.raises(grpc.RpcError, match=f"(?s)INVALID_ARGUMENT.*{ADVICE}"):
            list(act(iter([first]), timeout=WAIT_S))


def test_messages_on_their_way_take_no_more_than_the_bound() -> None:
    with (
        Child(listen, 8 << 20) as learner,
        Child(call_act, learner.receive(), grpc.Compression.NoCompression, []) as client,
    ):
        code, _ = client.receive()

        assert code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE"), "gRPC or the budget of the connection, whichever is first"
        assert learner.growth_bytes() < BOMB_BYTES / 2
