"""Whether what an env-server sends keeps to the contract; independent of the code of both sides."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import lz4.block
import numpy as np
from numpy.typing import NDArray

from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.contract.rows import ADDITIONS, DUE, Row, rows_when

FLAGS = ("is_first", "terminated", "truncated", "interrupted")


class ViolationError(Exception):
    """A message breaks a rule; the text names the field."""


@dataclass
class Books:
    """What a learner must count of a stream that was sent to its end."""

    rows: int = 0
    env_steps: int = 0
    """Transitions that an action caused."""
    interruptions: int = 0
    """Environments that failed: one that stays away, each second row interrupted, counts once."""
    episodes: int = 0


def check_stream(requests: Iterable[pb.ActRequest], learner_minor: int = PROTOCOL_MINOR) -> Books:
    """The books of a stream: all its requests, to a learner of that minor version. Raises ViolationError."""
    remaining = iter(requests)
    checker = StreamChecker(next(remaining), learner_minor)
    for request in remaining:
        checker.check(request)
    return checker.books


@dataclass
class _Env:
    """After the messages so far."""

    episode: str = DUE
    interrupted_at: int = -2
    """The step of the newest interrupted row; there was none before step 1."""


class StreamChecker:
    """Follows one stream."""

    def __init__(self, hello: pb.ActRequest, learner_minor: int) -> None:
        _require(hello.HasField("hello"), "hello: the first message")
        self._hello = hello.hello
        _require(self._hello.protocol_version == PROTOCOL_VERSION, "hello.protocol_version")
        _require(self._hello.num_envs >= 1, "hello.num_envs")
        for name in ("env_server_id", "instance_id"):
            text = getattr(self._hello, name)
            _require(1 <= len(text) <= 253 and text.isascii() and text.isprintable(), f"hello.{name}")
        self._minor = min(self._hello.protocol_minor, learner_minor)
        self._envs = [_Env() for _ in range(self._hello.num_envs)]
        self._step = 0
        self._over = False
        self.books = Books()

    def check(self, request: pb.ActRequest) -> None:
        """The next message. Raises ViolationError."""
        _require(not self._over, "message: after the Bye")
        match request.WhichOneof("payload"):
            case "observations":
                self._check_step(request.observations)
            case "bye":
                self._check_bye(request.bye)
            case "hello":
                raise ViolationError("message: a second hello")
            case _:
                raise ViolationError("message: no payload")

    def _check_bye(self, bye: pb.Bye) -> None:
        self._over = True
        _require(len(bye.detail) <= 200, "bye.detail")
        name = f"Bye.{pb.Bye.Reason.Name(bye.reason)}"
        _require(ADDITIONS.get(name, 0) <= self._minor, f"bye.reason: {name} in minor {self._minor}")

    def _check_step(self, message: pb.Observations) -> None:
        _require(message.step == self._step, f"step: {message.step}, expected {self._step}")
        rewards = self._column(message.rewards, "rewards", "<f4")
        _require(bool(np.isfinite(rewards).all()), "rewards: not finite")
        columns = {name: self._flags(message, name) for name in FLAGS}
        _require(not message.env_us or self._minor >= ADDITIONS["Observations.env_us"], "env_us: not in this version")
        rows = [
            self._check_row(i, env, tuple(bool(columns[name][i]) for name in FLAGS), float(rewards[i]))
            for i, env in enumerate(self._envs)
        ]
        self._check_leaves(message, rows)
        self._check_episodes(message)
        self._step += 1
        self.books.rows += len(self._envs)

    def _check_row(self, i: int, env: _Env, flags: tuple[bool, ...], reward: float) -> Row:
        row = next((row for row in rows_when(env.episode, self._minor) if row.flags == flags), None)
        if row is None:
            wrong = _first_wrong(env.episode, flags)
            raise ViolationError(f"{wrong}[{i}]: no row is {dict(zip(FLAGS, flags, strict=True))} when {env.episode}")
        _require(reward == 0 or row.rewarded, f"rewards[{i}]: {reward} where {row.name}")
        if not row.is_first and not row.interrupted:
            self.books.env_steps += 1
        if row.interrupted and not row.is_first:
            self.books.interruptions += self._step - env.interrupted_at != 2
            env.interrupted_at = self._step
        env.episode = row.then
        return row

    def _check_leaves(self, message: pb.Observations, rows: list[Row]) -> None:
        _require(len(message.leaves) == len(self._hello.observation), f"leaves: {len(message.leaves)}")
        for i, (spec, data) in enumerate(zip(self._hello.observation, message.leaves, strict=True)):
            stack = max(spec.frame_stack, 1)
            frames = [stack if row.whole_stack else 1 for row in rows]
            dtype = np.dtype(pb.DType.Name(spec.dtype).removeprefix("DTYPE_").lower()).newbyteorder("<")
            size = sum(frames) * math.prod(spec.shape) * dtype.itemsize
            plain = _decompressed(data, size, f"leaves[{i}]") if self._is_compressed(i) else data
            _require(len(plain) == size, f"leaves[{i}]: {len(plain)} bytes, expected {size}")
            elements = np.frombuffer(plain, np.uint8 if dtype == np.bool_ else dtype)
            _check_elements(elements, spec, f"leaves[{i}]")
            of_rows = np.split(elements.reshape(sum(frames), -1), np.cumsum(frames)[:-1])
            gaps = [part for row, part in zip(rows, of_rows, strict=True) if row.interrupted]
            _require(not any(gap.any() for gap in gaps), f"leaves[{i}]: an interrupted row is not zeros")

    def _is_compressed(self, leaf: int) -> bool:
        offered = self._hello.offered_compression
        return leaf < len(offered) and offered[leaf] == pb.COMPRESSION_LZ4

    def _check_episodes(self, message: pb.Observations) -> None:
        _require(len(message.episodes) <= len(self._envs), "episodes: more than environments")
        for episode in message.episodes:
            _require(episode.env < len(self._envs), f"episodes.env: {episode.env}")
            _require(math.isfinite(episode.episode_return), "episodes.episode_return: not finite")
        self.books.episodes += len(message.episodes)

    def _flags(self, message: pb.Observations, name: str) -> NDArray[Any]:
        data = getattr(message, name)
        if name == "interrupted":
            _require(
                not data or self._minor >= ADDITIONS["Observations.interrupted"], "interrupted: not in this version"
            )
            data = data or bytes(len(self._envs))
        column = self._column(data, name, "u1")
        _require(bool((column <= 1).all()), f"{name}: neither 0 nor 1")
        return column

    def _column(self, data: bytes, name: str, dtype: str) -> NDArray[Any]:
        _require(len(data) == np.dtype(dtype).itemsize * len(self._envs), f"{name}: {len(data)} bytes")
        return np.frombuffer(data, dtype)


def _first_wrong(episode: str, flags: tuple[bool, ...]) -> str:
    """The flag to blame: is_first must be as the state demands; else interrupted has its own combination."""
    is_first, _, _, interrupted = flags
    if is_first != (episode == DUE):
        return "is_first"
    return "interrupted" if interrupted else "is_first"


def _decompressed(block: bytes, size: int, name: str) -> bytes:
    try:
        plain: bytes = lz4.block.decompress(block, uncompressed_size=size)
    except lz4.block.LZ4BlockError as error:
        raise ViolationError(f"{name}: {error}") from error
    return plain


def _check_elements(elements: NDArray[Any], spec: pb.LeafSpec, name: str) -> None:
    if elements.dtype.kind == "f":
        with np.errstate(over="ignore"):
            fit = np.isfinite(elements.astype(np.float32))
    elif spec.num_categories or spec.dtype == pb.DTYPE_BOOL:
        fit = (elements >= 0) & (elements < (spec.num_categories or 2))
    else:
        return
    _require(bool(fit.all()), f"{name}: an element is out of range")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ViolationError(text)
