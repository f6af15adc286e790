"""A stock gRPC client for tests of the native actor pool, and the pool that fits it."""

import queue
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

import kubebeast_native as native
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc

T, B, NUM_ENVS, NUM_LOGITS, CORE_STATE_SIZE = 3, 2, 2, 4, 5
PATIENCE_MS = 60_000

SPEC = native.EnvSpec(
    "Test-v0",
    observation=[native.LeafSpec("image", "uint8", (2, 3), frame_stack=2), native.LeafSpec("speed", "float32", ())],
    action=[native.LeafSpec("", "int64", (), num_categories=4)],
)


class Client:
    """One stream of NUM_ENVS environments; the image of step t is filled with t."""

    def __init__(self, address: str) -> None:
        self._requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        self._channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        stub = actor_pool_pb2_grpc.ActorPoolStub(self._channel)
        # A grpc.Call and an iterator of ActResponse: grpcio has no public type for both.
        self._call: Any = stub.Act(iter(self._requests.get, None))
        self._step = 0

    def hello(self, env_config: str = "", minor: int = native.PROTOCOL_MINOR) -> None:
        image = pb.LeafSpec(path="image", dtype=pb.DTYPE_UINT8, shape=[2, 3], frame_stack=2)
        hello = pb.Hello(
            protocol_version=native.PROTOCOL_VERSION,
            protocol_minor=minor,
            env_config=env_config,
            env_server_id="pod-0",
            instance_id="1",
            env_id="Test-v0",
            num_envs=NUM_ENVS,
            observation=[image, pb.LeafSpec(path="speed", dtype=pb.DTYPE_FLOAT32)],
            action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=4)],
        )
        self._requests.put(pb.ActRequest(hello=hello))
        assert next(self._call).welcome.run_id == "run"

    def observe(self, *, episodes: tuple[pb.Episode, ...] = ()) -> None:
        first = self._step == 0
        frames = NUM_ENVS * (2 if first else 1)
        observations = pb.Observations(
            step=self._step,
            leaves=[bytes([self._step]) * (6 * frames), np.full(NUM_ENVS, self._step, np.float32).tobytes()],
            rewards=np.full(NUM_ENVS, self._step, np.float32).tobytes(),
            terminated=bytes(NUM_ENVS),
            truncated=bytes(NUM_ENVS),
            is_first=bytes([first] * NUM_ENVS),
            episodes=episodes,
        )
        self._requests.put(pb.ActRequest(observations=observations))
        self._step += 1

    def actions(self) -> NDArray[np.int64]:
        return np.frombuffer(next(self._call).actions.leaves[0], np.int64)

    def status(self) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError):
            next(self._call)
        code: grpc.StatusCode = self._call.code()
        return code

    def close(self) -> None:
        self._requests.put(None)
        self._call.cancel()
        self._channel.close()


def make_pool(**overrides: Any) -> native.ActorPool:
    options: dict[str, Any] = {
        "address": "127.0.0.1:0",
        "run_id": "run",
        "unroll_length": T,
        "batch_size": B,
        "expected": SPEC,
    }
    return native.ActorPool(**(options | overrides))


def next_batch(pool: native.ActorPool) -> native.InferenceBatch:
    batch = pool.next_inference(PATIENCE_MS)
    assert batch is not None
    return batch


def outputs(batch: native.InferenceBatch, *, action: int = 1) -> dict[str, Any]:
    rows = batch.num_rows
    return {
        "actions": [np.full(rows, action, np.int64)],
        "policy_logits": np.full((rows, NUM_LOGITS), 0.5, np.float32),
        "baseline": np.full(rows, 0.25, np.float32),
        "policy_version": 7,
        "core_state": np.full((int(batch.unroll_start.sum()), CORE_STATE_SIZE), 3, np.float32),
    }


def roll(pool: native.ActorPool, client: Client, steps: int) -> None:
    for step in range(steps):
        client.observe()
        batch = next_batch(pool)
        batch.reply(**outputs(batch, action=step))
        assert client.actions().tolist() == [step] * NUM_ENVS
