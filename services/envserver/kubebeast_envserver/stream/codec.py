"""Conversion of rows and actions to messages and back (kubebeast_protos/v1/actor_pool.proto).

Messages of the learner are not trusted.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import lz4.block
import numpy as np

from kubebeast_common.spec.episode_options import from_text
from kubebeast_common.spec.leaves import Leaf
from kubebeast_common.spec.limits import MAX_LOG_INFO
from kubebeast_common.text import printable
from kubebeast_envserver.rows.episodes import InfoNumbers
from kubebeast_envserver.rows.rows import Array, StepRows
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

LZ4_MIN_BYTES = 1024
"""Bytes of a frame below which compression is not worthwhile."""
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
MAX_DETAIL_CHARS = 200
"""Maximum length of Bye.detail."""


class ProtocolError(Exception):
    """Violation of the contract by the learner."""


class VersionError(ProtocolError):
    """Learner with another major version of the contract."""


def leaf_spec(leaf: Leaf) -> pb.LeafSpec:
    return pb.LeafSpec(
        path=leaf.path,
        dtype=f"DTYPE_{leaf.dtype.upper()}",
        shape=leaf.shape,
        frame_stack=leaf.frame_stack,
        num_categories=leaf.num_categories,
        bounded=leaf.bounded,
        role=pb.ROLE_ACTION_MASK if leaf.is_action_mask else pb.ROLE_UNSPECIFIED,
    )


def offer_compression(leaf: Leaf, lz4_allowed: bool) -> pb.Compression:
    """Returns LZ4 for uint8 leaves (images) with a frame that is large enough."""
    worthwhile = leaf.dtype == "uint8" and math.prod(leaf.shape) >= LZ4_MIN_BYTES
    return pb.COMPRESSION_LZ4 if lz4_allowed and worthwhile else pb.COMPRESSION_NONE


def check_welcome(welcome: pb.Welcome, offered: Sequence[pb.Compression]) -> list[pb.Compression]:
    """Returns the compression to use, one entry per observation leaf.

    Raises VersionError for another major version, and ProtocolError for a compression that was not offered, or too many
    keys in log_info.
    """
    if welcome.protocol_version != PROTOCOL_VERSION:
        raise VersionError(f"Welcome.protocol_version is {welcome.protocol_version}, expected {PROTOCOL_VERSION}")
    chosen = list(welcome.compression)
    if len(chosen) != len(offered):
        raise ProtocolError(f"Welcome.compression has {len(chosen)} entries for {len(offered)} observation leaves")
    for i, (choice, offer) in enumerate(zip(chosen, offered, strict=True)):
        if choice not in (offer, pb.COMPRESSION_NONE):
            raise ProtocolError(f"Welcome.compression[{i}] is {choice}, offered was {offer}")
    if len(welcome.log_info) > MAX_LOG_INFO:
        raise ProtocolError(f"Welcome.log_info has {len(welcome.log_info)} entries, at most {MAX_LOG_INFO} are sent")
    return chosen


def decode_options(entries: Iterable[pb.EpisodeOptions], num_envs: int) -> dict[int, dict[str, Any]]:
    """Returns the options of the next episodes by environment. Raises ProtocolError if an entry breaks the contract."""
    options: dict[int, dict[str, Any]] = {}
    for entry in entries:
        if entry.env >= num_envs:
            raise ProtocolError(f"episode_options.env is {entry.env}, there are {num_envs} environments")
        if entry.env in options:
            raise ProtocolError(f"episode_options.env is {entry.env} twice")
        try:
            options[entry.env] = from_text(entry.options)
        except ValueError as error:
            raise ProtocolError(f"episode_options of environment {entry.env}: {error}") from error
    return options


def encode_observations(
    step: int,
    rows: StepRows,
    leaves: Sequence[Leaf],
    compression: Sequence[pb.Compression],
    env_us: int = 0,
    info: InfoNumbers | None = None,
) -> pb.ActRequest:
    """Encodes one vector step; `rows` hold newest frames. A stack is sent only if is_first: its first frame, repeated.

    `env_us` is the computing time of the environments in microseconds, if Actions.traced requests it. `info` reads the
    numbers that Welcome.log_info requests; None for a learner before INFO_MINOR.
    """
    # Flags are searched as bytes, which costs a twentieth of NumPy's any(). Fields are set in place: a message that is
    # given to another one's constructor is serialized and parsed.
    is_first, interrupted, waiting = rows.is_first.tobytes(), rows.interrupted.tobytes(), rows.waiting.tobytes()
    request = pb.ActRequest()
    message = request.observations
    message.step = step
    for leaf, frames, method in zip(leaves, rows.observation, compression, strict=True):
        data = frames
        if leaf.frame_stack > 1 and 1 in is_first:
            data = np.repeat(frames, np.where(rows.is_first, leaf.frame_stack, 1), axis=0)
        message.leaves.append(_encode_leaf(data, method))
    message.rewards = _little_endian(rows.rewards).tobytes()
    message.terminated = rows.terminated.tobytes()
    message.truncated = rows.truncated.tobytes()
    message.is_first = is_first
    if 1 in interrupted:
        message.interrupted = interrupted
    if 1 in waiting:
        message.waiting = waiting
    for env, episode_return, length in rows.episodes:
        finite = min(max(episode_return, -_MAX_FLOAT32), _MAX_FLOAT32)  # a sum of finite rewards may be larger
        episode = message.episodes.add(env=env, episode_return=finite, length=length)
        if info is not None:
            episode.exact_return = episode_return
            episode.info.extend(info.read(rows, env))
    message.env_us = env_us
    return request


def _encode_leaf(data: Array, method: pb.Compression) -> bytes:
    little = _little_endian(data)
    if method == pb.COMPRESSION_LZ4:
        block: bytes = lz4.block.compress(np.ascontiguousarray(little), mode="fast", store_size=False)
        return block
    return little.tobytes()


@dataclass(frozen=True, slots=True)
class ActionLayout:
    """Layout of an action leaf on the wire, for all environments of a stream."""

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """Shape of the whole leaf, [B, *shape]."""
    num_bytes: int
    num_categories: int

    @classmethod
    def of(cls, leaf: Leaf, num_envs: int) -> "ActionLayout":
        dtype, shape = np.dtype(leaf.dtype).newbyteorder("<"), (num_envs, *leaf.shape)
        return cls(leaf.path, dtype, shape, math.prod(shape) * dtype.itemsize, leaf.num_categories)


def decode_actions(actions: pb.Actions, step: int, layouts: Sequence[ActionLayout]) -> list[Array]:
    """Returns one read-only array [B, *shape] per action leaf. Raises ProtocolError if the message does not fit."""
    if actions.step != step:
        raise ProtocolError(f"Actions.step is {actions.step}, expected {step}")
    leaves = actions.leaves
    if len(leaves) != len(layouts):
        raise ProtocolError(f"Actions.leaves has {len(leaves)} entries for {len(layouts)} action leaves")
    return [_decode_leaf(data, layout) for data, layout in zip(leaves, layouts, strict=True)]


def _decode_leaf(data: bytes, layout: ActionLayout) -> Array:
    if len(data) != layout.num_bytes:
        raise ProtocolError(f"action leaf {layout.path!r} has {len(data)} bytes, expected {layout.num_bytes}")
    kind = layout.dtype.kind
    if kind == "b" and data.strip(b"\0\1"):
        raise ProtocolError(f"action leaf {layout.path!r} holds a byte that is neither 0 nor 1")
    array = np.frombuffer(data, layout.dtype)
    # Plain Python checks the numbers, as they are few: NumPy's reductions are so much code that the processor's caches
    # have lost it after each wait for the learner.
    if layout.num_categories > 0:
        numbers = array.tolist()
        if min(numbers, default=0) < 0 or max(numbers, default=0) >= layout.num_categories:
            raise _out_of_range(layout, (array >= 0) & (array < layout.num_categories), array)
    elif kind == "f" and not all(map(math.isfinite, array.tolist())):
        raise _out_of_range(layout, np.isfinite(array), array)
    return array.reshape(layout.shape)


def _out_of_range(layout: ActionLayout, in_range: Array, array: Array) -> ProtocolError:
    limit = f"a category below {layout.num_categories}" if layout.num_categories > 0 else "a finite number"
    return ProtocolError(f"action leaf {layout.path!r} holds {array[~in_range][0]}, which is not {limit}")


def _little_endian(array: Array) -> Array:
    is_little = array.dtype.isnative and sys.byteorder == "little"
    return array if is_little else array.astype(array.dtype.newbyteorder("<"))


def make_bye(reason: pb.Bye.Reason, detail: str = "") -> pb.ActRequest:
    return pb.ActRequest(bye=pb.Bye(reason=reason, detail=printable(detail, MAX_DETAIL_CHARS)))
