"""Whole streams that keep to the contract: any Hello, any order of rows that the table allows, any values."""

import math
from dataclasses import dataclass
from typing import Any

import lz4.block
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.contract.rows import ADDITIONS, DUE, Row, rows_when

MAX_STEPS = 50
DTYPES = [name for name in pb.DType.keys() if name != "DTYPE_INVALID"]  # noqa: SIM118 - it is no mapping
FLOATS = (pb.DTYPE_FLOAT32, pb.DTYPE_FLOAT64)
REWARDS = np.array([0.0, -0.0, 1.0, -2.5, 1e-45, np.finfo(np.float32).max, np.finfo(np.float32).min], np.float32)
LARGEST_FLOATS = {
    np.dtype("<f4"): float(np.finfo(np.float32).max),
    np.dtype("<f8"): float.fromhex("0x1.fffffefffffffp127"),
}
"""The next number is infinite as float32."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A Hello, Observations, perhaps a Bye."""

    hello: pb.Hello
    course: bytes
    """[num_steps * num_envs]: each byte chooses a row among those that are allowed."""
    seed: int
    """Of rewards and elements."""
    bye: pb.Bye | None

    @property
    def requests(self) -> list[pb.ActRequest]:
        steps = follow(self.hello, self.course, np.random.default_rng(self.seed))
        end = [] if self.bye is None else [pb.ActRequest(bye=self.bye)]
        return [pb.ActRequest(hello=self.hello), *steps, *end]


@st.composite
def leaf_specs(draw: st.DrawFn) -> list[pb.LeafSpec]:
    """Of observations, one to three."""
    return [
        pb.LeafSpec(
            path=f"leaf{index}",
            dtype=draw(st.sampled_from(DTYPES)),
            shape=draw(st.lists(st.integers(0, 4), max_size=2)),
            frame_stack=draw(st.integers(0, 4)),
        )
        for index in range(draw(st.integers(1, 3)))
    ]


@st.composite
def hellos(draw: st.DrawFn) -> pb.Hello:
    leaves = draw(leaf_specs())
    for leaf in leaves:
        if leaf.dtype not in FLOATS:
            leaf.num_categories = draw(st.integers(0, 2 if leaf.dtype == pb.DTYPE_BOOL else 5))
    method = st.sampled_from(pb.Compression.keys())
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        protocol_minor=draw(st.integers(0, PROTOCOL_MINOR)),
        env_server_id="drawn",
        instance_id="drawn",
        env_id="Drawn-v0",
        num_envs=draw(st.integers(1, 8)),
        observation=leaves,
        action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=3)],
        offered_compression=draw(st.lists(method, max_size=len(leaves))),
    )


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    hello = draw(hellos())
    num_rows = draw(st.integers(0, MAX_STEPS)) * hello.num_envs
    reasons = [reason for name, reason in pb.Bye.Reason.items() if since(f"Bye.{name}") <= hello.protocol_minor]
    byes = st.builds(pb.Bye, reason=st.sampled_from(reasons), detail=st.text(max_size=200))
    course, seed = draw(st.binary(min_size=num_rows, max_size=num_rows)), draw(st.integers(0, 2**32 - 1))
    return Stream(hello, course, seed, draw(st.none() | byes))


def since(name: str) -> int:
    """The minor version that has it."""
    return ADDITIONS.get(name, 0)


def follow(hello: pb.Hello, course: bytes, values: np.random.Generator) -> list[pb.ActRequest]:
    """The Observations of a stream's course."""
    states = [DUE] * hello.num_envs
    requests = []
    for step in range(len(course) // hello.num_envs):
        choices = course[step * hello.num_envs :]
        options = [rows_when(state, hello.protocol_minor) for state in states]
        rows = [option[choice % len(option)] for option, choice in zip(options, choices, strict=False)]
        requests.append(pb.ActRequest(observations=observations(hello, step, rows, values)))
        states = [row.then for row in rows]
    return requests


def observations(hello: pb.Hello, step: int, rows: list[Row], values: np.random.Generator) -> pb.Observations:
    """These rows with drawn rewards, elements and episodes."""
    rewards = [values.choice(REWARDS) if row.rewarded else 0 for row in rows]
    interrupted = bytes(row.interrupted for row in rows)
    may_be_left_out = not any(interrupted)
    must_be_left_out = hello.protocol_minor < since("Observations.interrupted")
    ended = [i for i, row in enumerate(rows) if (row.terminated or row.truncated) and not row.interrupted]
    traced = hello.protocol_minor >= since("Observations.env_us") and values.integers(2)
    return pb.Observations(
        step=step,
        leaves=[leaf_bytes(hello, index, rows, values) for index in range(len(hello.observation))],
        rewards=np.array(rewards, "<f4").tobytes(),
        terminated=bytes(row.terminated for row in rows),
        truncated=bytes(row.truncated for row in rows),
        is_first=bytes(row.is_first for row in rows),
        interrupted=b"" if must_be_left_out or (may_be_left_out and values.integers(2)) else interrupted,
        episodes=[pb.Episode(env=i, episode_return=-1.5, length=step) for i in ended if values.integers(2)],
        env_us=int(values.integers(1, 2**40)) if traced else 0,
    )


def leaf_bytes(hello: pb.Hello, index: int, rows: list[Row], values: np.random.Generator) -> bytes:
    """One leaf as it travels."""
    spec = hello.observation[index]
    data = b"".join(row_elements(spec, row, values).tobytes() for row in rows)
    if index < len(hello.offered_compression) and hello.offered_compression[index] == pb.COMPRESSION_LZ4:
        block: bytes = lz4.block.compress(data, store_size=False)
        return block
    return data


def row_elements(spec: pb.LeafSpec, row: Row, values: np.random.Generator) -> NDArray[Any]:
    """Any that the leaf may hold, the extreme ones among them; zeros in an interrupted row."""
    count = math.prod(spec.shape) * (max(spec.frame_stack, 1) if row.whole_stack else 1)
    dtype = np.dtype(pb.DType.Name(spec.dtype).removeprefix("DTYPE_").lower()).newbyteorder("<")
    if row.interrupted:
        return np.zeros(count, dtype)
    if dtype.kind == "f":
        largest = LARGEST_FLOATS[dtype]
        return values.choice(np.array([0.0, -0.0, 0.5, -1e-40, largest, -largest], dtype), count)
    if spec.num_categories or dtype.kind == "b":
        return values.integers(spec.num_categories or 2, size=count).astype(dtype)
    limits = np.iinfo(dtype)
    return values.integers(limits.min, limits.max, count, dtype.newbyteorder("="), endpoint=True).astype(dtype)
