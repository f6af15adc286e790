"""Serialized messages of the wire contract for a Cell, encoded in advance so that sending them costs almost nothing."""

from pathlib import Path

from benchmarks import frames, recorded_env
from benchmarks.cell import Cell
from kubebeast_envserver.stream import codec
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

# Tag bytes: field number << 3 | wire type (https://protobuf.dev/programming-guides/encoding/).
_OBSERVATIONS_TAG = bytes([pb.ActRequest.OBSERVATIONS_FIELD_NUMBER << 3 | 2])
_STEP_TAG = bytes([pb.Observations.STEP_FIELD_NUMBER << 3])


def hello(cell: Cell, stream: int) -> bytes:
    """Returns the Hello of the cell's stream number `stream`."""
    message = pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        env_server_id=f"replay-{stream}",
        instance_id=f"replay-{stream}",
        env_id="Replay-v0",
        num_envs=cell.num_envs,
        observation=[codec.leaf_spec(leaf) for leaf in recorded_env.observation_leaves(cell)],
        action=[codec.leaf_spec(leaf) for leaf in recorded_env.action_leaves()],
        offered_compression=_compression(cell),
    )
    return pb.ActRequest(hello=message).SerializeToString()


def observation_bodies(cell: Cell, recording: Path) -> list[bytes]:
    """Returns Observations without step numbers: the opening step first, then the steps to repeat forever."""
    env = recorded_env.RecordedEnv(cell, recording)
    steps = [env.reset(), *(env.step([]) for _ in range(frames.NUM_STEPS - 1))]
    # Step 0 is an unset field, and so not sent.
    requests = [codec.encode_observations(0, rows, env.spec_observation, _compression(cell)) for rows in steps]
    return [request.observations.SerializeToString() for request in requests]


def _compression(cell: Cell) -> list[pb.Compression]:
    return [pb.COMPRESSION_LZ4 if cell.codec == "lz4" else pb.COMPRESSION_NONE]


def with_step(body: bytes, step: int) -> bytes:
    """Returns the ActRequest with `body` as step number `step`."""
    numbered = _STEP_TAG + _varint(step)
    return b"".join((_OBSERVATIONS_TAG, _varint(len(numbered) + len(body)), numbered, body))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
