"""Checker of the messages of an env-server, one at a time; independent of the code of both sides."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from kubebeast_conformance.contract.hello import MAX_MESSAGE_BYTES, check_hello
from kubebeast_conformance.contract.leaves import check_elements, decompressed, dtype_of, frame_elements, frames_of
from kubebeast_conformance.contract.mask import check_mask
from kubebeast_conformance.contract.rows import ADDITIONS, DUE, Row, rows_when
from kubebeast_conformance.contract.violation import Place, ViolationError, require
from kubebeast_protos.v1 import PROTOCOL_MINOR
from kubebeast_protos.v1 import actor_pool_pb2 as pb

FLAGS = ("is_first", "terminated", "truncated", "interrupted", "waiting")
MAX_DETAIL_CHARACTERS = 200
MAX_FLOAT32 = float(np.finfo(np.float32).max)
_GZIP_OR_DEFLATE = (b"\x1f\x8b", b"\x78")
"""First bytes of messages that gRPC compressed. No ActRequest begins with them."""


@dataclass
class Books:
    """Counts of a learner for a complete stream."""

    rows: int = 0
    env_steps: int = 0
    """Transitions caused by an action."""
    interruptions: int = 0
    """Failures of environments. An environment that stays away, with every second row interrupted, counts once."""
    episodes: int = 0


def check_stream(requests: Iterable[pb.ActRequest], learner_minor: int = PROTOCOL_MINOR) -> Books:
    """Checks all requests of a stream to a learner of that minor version that accepts all offered compression.

    Returns the counts. Raises ViolationError.
    """
    remaining = iter(requests)
    checker = EnvServerStream()
    hello = checker.open(next(remaining).SerializeToString())
    checker.welcome(learner_minor, list(hello.offered_compression))
    for request in remaining:
        checker.check(request.SerializeToString(), traced=True)
    return checker.books


@dataclass
class _Env:
    """State of an environment after the messages so far."""

    episode: str = DUE
    interrupted_at: int = -2
    """Step of the newest interrupted row, at least 1; -2 for none."""


class EnvServerStream:
    """A checker of one stream: `open` for the Hello, `welcome` for the learner's answer, `check` for later messages."""

    def __init__(self) -> None:
        self.hello = pb.Hello()
        self.books = Books()
        self.is_over = False
        """True after a Bye."""
        self._minor = self._num_info = 0
        self._compression: list[pb.Compression] = []
        self._envs: list[_Env] = []
        self._step = 0

    def open(self, data: bytes) -> pb.Hello:
        """Checks the first message and returns the Hello. Raises ViolationError."""
        try:
            request = _parsed(data, "H1")
            require(request.HasField("hello"), "H1", "", "the first message is no Hello")
            check_hello(request.hello)
        except ViolationError as error:
            error.message = data
            raise
        self.hello = request.hello
        self._envs = [_Env() for _ in range(self.hello.num_envs)]
        return self.hello

    def welcome(self, learner_minor: int, compression: list[pb.Compression], num_info: int = 0) -> None:
        """Sets minor version, compression and number of keys in log_info of the learner's Welcome."""
        self._num_info = num_info
        self._minor = min(self.hello.protocol_minor, learner_minor)
        missing = len(self.hello.observation) - len(compression)
        self._compression = compression + [pb.COMPRESSION_NONE] * missing

    def check(self, data: bytes, *, traced: bool = False) -> pb.ActRequest:
        """Checks the next message. traced is the flag of the Actions before it. Raises ViolationError."""
        try:
            require(not self.is_over, "E1", "", "a message after the Bye")
            request = _parsed(data, "O3")
            match request.WhichOneof("payload"):
                case "observations":
                    self._check_step(request.observations, traced)
                case "bye":
                    self._check_bye(request.bye)
                case "hello":
                    raise ViolationError("H1", "hello", "a second hello")
                case _:
                    raise ViolationError("O3", "", "no payload")
        except ViolationError as error:
            error.message = data
            raise
        return request

    def _check_bye(self, bye: pb.Bye) -> None:
        self.is_over = True
        length = len(bye.detail)
        require(length <= MAX_DETAIL_CHARACTERS, "E1", "bye.detail", f"{length} characters")
        name = f"Bye.{_reason_name(bye)}"
        require(ADDITIONS.get(name, 0) <= self._minor, "V2", "bye.reason", f"{name} in minor {self._minor}")

    def _check_step(self, message: pb.Observations, traced: bool) -> None:
        require(
            message.step == self._step,
            "O1",
            "observations.step" if message.step else "observations",
            f"step: {message.step}, expected {self._step}",
        )
        rewards = self._column(message.rewards, "O8", "rewards", "<f4")
        finite = np.isfinite(rewards)
        if not finite.all():
            first = int(np.argmin(finite))
            raise ViolationError("O8", Place("observations.rewards", first, 4), f"{rewards[first]} is not finite")
        columns = {name: self._flags(message, name) for name in FLAGS}
        self._check_env_us(message, traced)
        rows = [
            self._check_row(i, env, tuple(bool(columns[name][i]) for name in FLAGS), float(rewards[i]))
            for i, env in enumerate(self._envs)
        ]
        self._check_turns(rows)
        self._check_leaves(message, rows)
        self._check_episodes(message)
        self._step += 1
        self.books.rows += len(self._envs)

    def _check_env_us(self, message: pb.Observations, traced: bool) -> None:
        place = "observations.env_us"
        known = self._minor >= ADDITIONS["Observations.env_us"]
        require(not message.env_us or known, "V2", place, f"in minor {self._minor}")
        require(not message.env_us or traced, "O11", place, "the Actions before were not traced")

    def _check_row(self, i: int, env: _Env, flags: tuple[bool, ...], reward: float) -> Row:
        options = rows_when(env.episode, PROTOCOL_MINOR, takes_turns=self.hello.takes_turns)
        row = next((row for row in options if row.flags == flags), None)
        if row is None:
            place = Place(f"observations.{_first_wrong(env.episode, flags)}", i)
            raise ViolationError("R1", place, f"no row is {dict(zip(FLAGS, flags, strict=True))} when {env.episode}")
        place = Place("observations.waiting" if row.waiting else "observations.interrupted", i)
        require(row.minor <= self._minor, "V2", place, f"the row {row.name} in minor {self._minor}")
        place = Place("observations.rewards", i, 4)
        require(reward == 0 or row.rewarded, "R2", place, f"{reward} in the row {row.name}")
        if not (row.is_first or row.interrupted or row.waiting):
            self.books.env_steps += 1
        if row.interrupted and not row.is_first:
            self.books.interruptions += self._step - env.interrupted_at != 2
            env.interrupted_at = self._step
        env.episode = row.then
        return row

    def _check_turns(self, rows: list[Row]) -> None:
        num_agents = max(self.hello.num_agents, 1)
        for first in range(0, len(rows), num_agents):
            agents = rows[first : first + num_agents]
            is_stuck = any(row.waiting for row in agents) and not any(row.has_turn for row in agents)
            require(not is_stuck, "R4", Place("observations.waiting", first), "it is no agent's turn")

    def _check_leaves(self, message: pb.Observations, rows: list[Row]) -> None:
        wanted = len(self.hello.observation)
        require(len(message.leaves) == wanted, "O3", "observations", f"leaves: {len(message.leaves)} for {wanted}")
        for i, (spec, data) in enumerate(zip(self.hello.observation, message.leaves, strict=True)):
            self._check_leaf(spec, data, self._compression[i] == pb.COMPRESSION_LZ4, rows, f"observations.leaves[{i}]")

    def _check_leaf(self, spec: pb.LeafSpec, data: bytes, is_lz4: bool, rows: list[Row], place: str) -> None:
        frames, dtype = frames_of(spec, rows), dtype_of(spec)
        size = sum(frames) * frame_elements(spec) * dtype.itemsize
        plain = decompressed(data, size, place) if is_lz4 else data
        require(len(plain) == size, "O4", place, f"{len(plain)} bytes, expected {size}")
        elements: NDArray[Any] = np.frombuffer(plain, np.uint8 if dtype == np.bool_ else dtype)
        check_elements(elements, spec, place, finite="O5", in_range="O6")
        of_rows = np.split(elements.reshape(sum(frames), -1), np.cumsum(frames)[:-1])
        for i, (part, row) in enumerate(zip(of_rows, rows, strict=True)):
            is_empty = not part.any() or (spec.role == pb.ROLE_ACTION_MASK and bool(part.all()))
            require(is_empty or not row.keeps_place, "R3", place, f"row {i}, {row.name}, is not zeros")
            if spec.role == pb.ROLE_ACTION_MASK and not row.keeps_place:
                check_mask(part.reshape(-1), self.hello, f"{place}, row {i}")

    def _check_episodes(self, message: pb.Observations) -> None:
        count = len(message.episodes)
        require(count <= len(self._envs), "O10", "observations.episodes", f"{count} for {len(self._envs)} environments")
        for i, episode in enumerate(message.episodes):
            place = f"observations.episodes[{i}]"
            require(episode.env < len(self._envs), "O10", f"{place}.env", f"episodes.env is {episode.env}")
            finite = math.isfinite(episode.episode_return)
            require(finite, "O10", f"{place}.episode_return", f"episodes.episode_return is {episode.episode_return}")
            self._check_exact_return(episode, f"{place}.exact_return")
            self._check_info(list(episode.info), f"{place}.info")
        self.books.episodes += count

    def _check_exact_return(self, episode: pb.Episode, place: str) -> None:
        if not episode.HasField("exact_return"):
            return
        require(self._minor >= ADDITIONS["Episode.exact_return"], "V2", place, f"in minor {self._minor}")
        exact, rounded = episode.exact_return, episode.episode_return
        fits = math.isfinite(exact) and np.float32(np.clip(exact, -MAX_FLOAT32, MAX_FLOAT32)) == np.float32(rounded)
        require(fits, "O10", place, f"episodes.exact_return is {exact}, episode_return is {rounded}")

    def _check_info(self, info: list[float], place: str) -> None:
        known = self._minor >= ADDITIONS["Episode.info"]
        require(not info or known, "V2", place, f"in minor {self._minor}")
        fits = len(info) in (0, self._num_info)
        require(fits, "O10", place, f"episodes.info has {len(info)} values for {self._num_info} keys")
        require(not any(map(math.isinf, info)), "O10", place, f"episodes.info is {info}")

    def _flags(self, message: pb.Observations, name: str) -> NDArray[Any]:
        data = getattr(message, name)
        if name in ("interrupted", "waiting"):
            known = self._minor >= ADDITIONS[f"Observations.{name}"]
            require(not data or known, "V2", f"observations.{name}", f"in minor {self._minor}")
            data = data or bytes(len(self._envs))
        column = self._column(data, "O9", name, "u1")
        if (column > 1).any():
            first = int(np.argmax(column > 1))
            raise ViolationError("O9", Place(f"observations.{name}", first), f"{column[first]}, neither 0 nor 1")
        return column

    def _column(self, data: bytes, rule: str, name: str, dtype: str) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize * len(self._envs)
        require(len(data) == size, rule, f"observations.{name}", f"{len(data)} bytes, expected {size}")
        return np.frombuffer(data, dtype)


def _parsed(data: bytes, rule: str) -> pb.ActRequest:
    require(len(data) <= MAX_MESSAGE_BYTES, "C3", "", f"{len(data)} bytes")
    try:
        return pb.ActRequest.FromString(data)
    except DecodeError as error:
        if data.startswith(_GZIP_OR_DEFLATE):
            raise ViolationError("C2", "", "the message is compressed by gRPC") from error
        raise ViolationError(rule, "", "the bytes are no ActRequest") from error


def _reason_name(bye: pb.Bye) -> str:
    return pb.Bye.Reason.Name(bye.reason) if bye.reason in pb.Bye.Reason.values() else str(bye.reason)


def _first_wrong(episode: str, flags: tuple[bool, ...]) -> str:
    """Returns the wrong flag: is_first if the state requires its opposite, else waiting or interrupted if set, else
    is_first.
    """
    is_first, _, _, interrupted, waiting = flags
    if is_first != (episode == DUE):
        return "is_first"
    if waiting:
        return "waiting"
    return "interrupted" if interrupted else "is_first"
