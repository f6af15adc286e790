"""A training without computation: the native pool, a constant policy, a learner that counts, healthy streams."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import grpc
import numpy as np

import kubebeast_native as native
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc

NUM_ENVS = 2
NUM_STREAMS = 2
NUM_ACTIONS = 3
OBSERVATION_SHAPE = (4,)
HANDSHAKE_TIMEOUT_MS = 3000
STEP_TIMEOUT_MS = 3000
MAX_MESSAGE_BYTES = 1 << 16
MAX_ENVS_PER_STREAM = 8
WAIT_S = 300.0


def hello(**changes: object) -> pb.ActRequest:
    """Returns a Hello that the training accepts, except for `changes`."""
    fields: dict[str, object] = {
        "protocol_version": native.PROTOCOL_VERSION,
        "env_server_id": "test",
        "instance_id": "test",
        "env_id": "Null-v0",
        "num_envs": NUM_ENVS,
        "observation": [pb.LeafSpec(dtype=pb.DTYPE_FLOAT32, shape=OBSERVATION_SHAPE)],
        "action": [pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=NUM_ACTIONS)],
    }
    return pb.ActRequest(hello=pb.Hello(**(fields | changes)))  # type: ignore[arg-type]


def observations(step: int, **changes: object) -> pb.ActRequest:
    """Returns the stream's message number `step` of one endless episode, except for `changes`."""
    flags = bytes(NUM_ENVS)
    fields: dict[str, object] = {
        "step": step,
        "leaves": [np.full((NUM_ENVS, *OBSERVATION_SHAPE), step, np.float32).tobytes()],
        "rewards": np.zeros(NUM_ENVS, np.float32).tobytes(),
        "terminated": flags,
        "truncated": flags,
        "is_first": flags if step else b"\1" * NUM_ENVS,
    }
    return pb.ActRequest(observations=pb.Observations(**(fields | changes)))  # type: ignore[arg-type]


class NullTraining:
    """Runs between enter and exit. `pool` is the native pool, `address` its listening address."""

    def __init__(
        self, *, handshake_timeout_ms: int = HANDSHAKE_TIMEOUT_MS, step_timeout_ms: int = STEP_TIMEOUT_MS
    ) -> None:
        self.pool = native.ActorPool(
            address="127.0.0.1:0",
            run_id="null-training",
            unroll_length=4,
            batch_size=2,
            max_envs_per_stream=MAX_ENVS_PER_STREAM,
            max_message_bytes=MAX_MESSAGE_BYTES,
            handshake_timeout_ms=handshake_timeout_ms,
            step_timeout_ms=step_timeout_ms,
            max_offences=0,  # all peers of a test have one host
        )
        self._delivered = threading.Condition()
        self._num_batches = 0
        self._threads: list[threading.Thread] = []
        self.endings: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Endings of healthy streams; empty while all of them run."""

    def __enter__(self) -> Self:
        self.pool.start()
        self._run(self._act)
        self._run(self._learn)
        for index in range(NUM_STREAMS):
            self._run(self._stream, index)
        assert self.pool.wait_env_spec(timeout_ms=int(WAIT_S * 1000)) is not None
        self.pool.open(num_logits=NUM_ACTIONS, core_state_size=0)
        self.wait_for_batches(NUM_STREAMS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.close()
        for thread in self._threads:
            thread.join()

    @property
    def address(self) -> str:
        return self.pool.address

    def wait_for_batches(self, num_batches: int) -> None:
        """Waits for `num_batches` more training batches; raises AssertionError if they do not come."""
        with self._delivered:
            target = self._num_batches + num_batches
            assert self._delivered.wait_for(lambda: self._num_batches >= target, WAIT_S), "training stands still"

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Checks the condition after every delivered batch; raises AssertionError if it stays false."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "the condition stays false"
            self.wait_for_batches(1)

    def _run(self, function: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=function, args=args)
        thread.start()
        self._threads.append(thread)

    def _act(self) -> None:
        try:
            while True:
                batch = self.pool.next_inference(timeout_ms=1000)
                if batch is not None:
                    rows = batch.num_rows
                    logits = np.zeros((rows, NUM_ACTIONS), np.float32)
                    batch.reply([np.zeros(rows, np.int64)], logits, np.zeros(rows, np.float32), policy_version=0)
        except native.ClosedError:
            return

    def _learn(self) -> None:
        try:
            while True:
                if self.pool.next_rollouts(timeout_ms=1000) is not None:
                    with self._delivered:
                        self._num_batches += 1
                        self._delivered.notify_all()
        except native.ClosedError:
            return

    def _stream(self, index: int) -> None:
        requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        requests.put(hello(env_server_id=f"healthy-{index}", instance_id=f"healthy-{index}"))
        with grpc.insecure_channel(self.address) as channel:
            replies = actor_pool_pb2_grpc.ActorPoolStub(channel).Act(_until_none(requests))
            try:
                for step, _ in enumerate(replies):
                    requests.put(observations(step))
                self.endings.put("OK")
            except grpc.RpcError as error:
                self.endings.put(f"{error.code()}: {error.details()}")
            finally:
                requests.put(None)


def _until_none(requests: "queue.SimpleQueue[pb.ActRequest | None]") -> Iterator[pb.ActRequest]:
    yield from iter(requests.get, None)
