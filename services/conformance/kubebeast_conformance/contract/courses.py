"""Generation of valid Observations: all sequences of rows that the contract's table allows, with random values."""

import itertools
from collections.abc import Iterator
from typing import Any

import lz4.block
import numpy as np
from numpy.typing import NDArray

from kubebeast_conformance.contract.leaves import dtype_of, frame_elements, frames_of, num_choices
from kubebeast_conformance.contract.rows import ADDITIONS, DUE, Row, rows_when
from kubebeast_protos.v1 import actor_pool_pb2 as pb

_GENTLE_REWARDS = (0.0, -0.0, 1.0, -2.5)
_EXTREME_REWARDS = (1e-45, float(np.finfo(np.float32).max), float(np.finfo(np.float32).min))
_LARGEST_FLOATS = {
    np.dtype("<f4"): float(np.finfo(np.float32).max),
    np.dtype("<f8"): float.fromhex("0x1.fffffefffffffp127"),
}
"""Largest values by dtype. The next larger number is infinite as float32."""


class Values:
    """A generator of random rewards and elements."""

    def __init__(self, seed: int, *, extreme: bool = False) -> None:
        """If extreme, the values include numbers that the contract allows but that are useless for training."""
        self.random = np.random.default_rng(seed)
        self._extreme = extreme

    def reward(self) -> float:
        return float(self.random.choice(_GENTLE_REWARDS + (_EXTREME_REWARDS if self._extreme else ())))

    def floats(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        largest = _LARGEST_FLOATS[dtype]
        extremes = (-1e-40, largest, -largest) if self._extreme else (-0.25,)
        return self.random.choice(np.array([0.0, -0.0, 0.5, *extremes], dtype), count)

    def is_drawn(self) -> bool:
        """Returns True with probability 1/2."""
        return bool(self.random.integers(2))


def since(name: str) -> int:
    """Returns the minor version that introduced a name, e.g. "Observations.interrupted"."""
    return ADDITIONS.get(name, 0)


def follow(hello: pb.Hello, course: bytes, values: Values) -> list[pb.ActRequest]:
    """Returns the Observations of a stream. Each byte of `course` selects one of an environment's allowed next rows."""
    return list(followed(hello, iter(course[: len(course) // hello.num_envs * hello.num_envs]), values))


def followed(hello: pb.Hello, choices: Iterator[int], values: Values) -> Iterator[pb.ActRequest]:
    """Yields the Observations of a stream until there are no more choices of rows."""
    states = [DUE] * hello.num_envs
    for step in itertools.count():
        chosen = list(itertools.islice(choices, hello.num_envs))
        if not chosen:
            return
        options = [rows_when(state, hello.protocol_minor, takes_turns=hello.takes_turns) for state in states]
        rows = [option[choice % len(option)] for option, choice in zip(options, chosen, strict=True)]
        if hello.takes_turns:
            rows = _with_turns(rows, options, hello.num_agents)
        yield pb.ActRequest(observations=observations(hello, step, rows, values))
        states = [row.then for row in rows]


def _with_turns(rows: list[Row], options: list[list[Row]], num_agents: int) -> list[Row]:
    """Returns the rows with a turn for the last agent of each environment without any."""
    given = list(rows)
    for first in range(0, len(rows), num_agents):
        if not any(row.has_turn for row in rows[first : first + num_agents]):
            given[first + num_agents - 1] = options[first + num_agents - 1][0]
    return given


def observations(hello: pb.Hello, step: int, rows: list[Row], values: Values) -> pb.Observations:
    """Returns Observations of these rows with random rewards, elements and episodes."""
    rewards = [values.reward() if row.rewarded else 0 for row in rows]
    interrupted = bytes(row.interrupted for row in rows)
    may_be_left_out = not any(interrupted)
    must_be_left_out = hello.protocol_minor < since("Observations.interrupted")
    ended = [i for i, row in enumerate(rows) if (row.terminated or row.truncated) and not row.interrupted]
    traced = hello.protocol_minor >= since("Observations.env_us") and values.is_drawn()
    return pb.Observations(
        step=step,
        leaves=[leaf_bytes(hello, index, rows, values) for index in range(len(hello.observation))],
        rewards=np.array(rewards, "<f4").tobytes(),
        terminated=bytes(row.terminated for row in rows),
        truncated=bytes(row.truncated for row in rows),
        is_first=bytes(row.is_first for row in rows),
        interrupted=b"" if must_be_left_out or (may_be_left_out and values.is_drawn()) else interrupted,
        waiting=bytes(row.waiting for row in rows) if any(row.waiting for row in rows) else b"",
        episodes=[pb.Episode(env=i, episode_return=-1.5, length=step) for i in ended if values.is_drawn()],
        env_us=int(values.random.integers(1, 2**40)) if traced else 0,
    )


def leaf_bytes(hello: pb.Hello, index: int, rows: list[Row], values: Values) -> bytes:
    """Returns the wire bytes of one leaf."""
    spec = hello.observation[index]
    if spec.role == pb.ROLE_ACTION_MASK:
        data = b"".join(bytes(num_choices(hello)) if row.keeps_place else mask_row(hello, values) for row in rows)
    else:
        data = b"".join(row_elements(spec, row, values).tobytes() for row in rows)
    if index < len(hello.offered_compression) and hello.offered_compression[index] == pb.COMPRESSION_LZ4:
        block: bytes = lz4.block.compress(data, store_size=False)
        return block
    return data


def mask_row(hello: pb.Hello, values: Values) -> bytes:
    """Returns a mask that allows each category with probability 1/2, and at least one per choice."""
    mask = bytearray()
    for leaf in hello.action:
        for _ in range(frame_elements(leaf) if leaf.num_categories else 0):
            allowed = values.random.integers(2, size=leaf.num_categories)
            allowed[values.random.integers(leaf.num_categories)] = 1
            mask += bytes(allowed.tolist())
    return bytes(mask)


def row_elements(spec: pb.LeafSpec, row: Row, values: Values) -> NDArray[Any]:
    """Returns random elements that the leaf may hold; zeros for a row that only keeps a place."""
    count = frame_elements(spec) * frames_of(spec, [row])[0]
    dtype = dtype_of(spec)
    if row.keeps_place:
        return np.zeros(count, dtype)
    if dtype.kind == "f":
        return values.floats(dtype, count)
    if spec.num_categories or dtype.kind == "b":
        return values.random.integers(spec.num_categories or 2, size=count).astype(dtype)
    limits = np.iinfo(dtype)
    return values.random.integers(limits.min, limits.max, count, dtype.newbyteorder("="), endpoint=True).astype(dtype)
