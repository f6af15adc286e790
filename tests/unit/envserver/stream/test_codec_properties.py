"""The codec handles all rows of environments and all messages of peers."""

import contextlib
import math
from typing import Any

import grpc
import lz4.block
import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import DTYPES, Leaf
from kubebeast_envserver.rows.rows import StepRows
from kubebeast_envserver.stream.codec import (
    MAX_DETAIL_CHARS,
    ActionLayout,
    ProtocolError,
    VersionError,
    check_welcome,
    decode_actions,
    encode_observations,
    make_bye,
)
from kubebeast_envserver.stream.connection import FINAL_CODES, DisconnectedError, RefusedError, end_error
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=150)

UINT32, UINT64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4)


@st.composite
def observation_leaves(draw: st.DrawFn) -> list[Leaf]:
    leaf = st.builds(Leaf, st.text(max_size=5), st.sampled_from(DTYPES), SHAPES, st.integers(1, 4))
    return draw(st.lists(leaf, min_size=1, max_size=3))


@st.composite
def frames(draw: st.DrawFn, leaf: Leaf, num_envs: int) -> NDArray[Any]:
    """[B, *shape] in either byte order, and not always contiguous."""
    dtype = np.dtype(leaf.dtype)
    array = draw(hnp.arrays(draw(st.sampled_from((dtype, dtype.newbyteorder(">")))), (num_envs, *leaf.shape)))
    return draw(st.sampled_from((array, np.asfortranarray(array), np.repeat(array, 2, axis=0)[::2])))


@st.composite
def step_rows(draw: st.DrawFn, leaves: list[Leaf]) -> StepRows:
    num_envs = draw(st.integers(1, 5))
    flags = hnp.arrays(np.bool_, num_envs)
    rewards = hnp.arrays(np.float32, num_envs, elements=st.floats(width=32, allow_nan=False, allow_infinity=False))
    episode = st.tuples(st.integers(0, num_envs - 1), st.floats(-1e6, 1e6, width=32), UINT64)
    return StepRows(
        observation=[draw(frames(leaf, num_envs)) for leaf in leaves],
        rewards=draw(rewards),
        terminated=draw(flags),
        truncated=draw(flags),
        is_first=draw(flags),
        episodes=draw(st.lists(episode, max_size=3)),
        interrupted=draw(st.one_of(flags, st.just(np.zeros(0, np.bool_)))),
    )


def received_frames(data: bytes, leaf: Leaf, is_first: NDArray[np.bool_], method: pb.Compression) -> NDArray[Any]:
    """Returns the received frames of a leaf, [num_envs + (frame_stack - 1) * rows with is_first, *shape]."""
    dtype = np.dtype(leaf.dtype).newbyteorder("<")
    count = len(is_first) + (leaf.frame_stack - 1) * int(is_first.sum())
    size = count * math.prod(leaf.shape) * dtype.itemsize
    raw = lz4.block.decompress(data, uncompressed_size=size) if method == pb.COMPRESSION_LZ4 else data
    assert len(raw) == size
    return np.frombuffer(raw, dtype).reshape(count, *leaf.shape)


@given(data=st.data(), leaves=observation_leaves(), step=UINT64)
@REPEATABLE
def test_every_field_of_a_step_arrives(data: st.DataObject, leaves: list[Leaf], step: int) -> None:
    rows = data.draw(step_rows(leaves))
    method = st.sampled_from((pb.COMPRESSION_NONE, pb.COMPRESSION_LZ4))
    compression = [data.draw(method) for _ in leaves]

    wire = encode_observations(step, rows, leaves, compression).SerializeToString()
    message = pb.ActRequest.FromString(wire).observations

    assert message.step == step
    np.testing.assert_array_equal(np.frombuffer(message.rewards, "<f4"), rows.rewards)
    for name in ("terminated", "truncated", "is_first"):
        np.testing.assert_array_equal(np.frombuffer(getattr(message, name), np.bool_), getattr(rows, name))
    assert message.interrupted == (rows.interrupted.tobytes() if rows.interrupted.any() else b"")
    assert [(e.env, e.episode_return, e.length) for e in message.episodes] == rows.episodes
    for leaf, sent, part, used in zip(leaves, rows.observation, message.leaves, compression, strict=True):
        expected = np.repeat(sent, np.where(rows.is_first, leaf.frame_stack, 1), axis=0)
        np.testing.assert_array_equal(received_frames(part, leaf, rows.is_first, used), expected)


@st.composite
def action_leaves(draw: st.DrawFn) -> list[Leaf]:
    categorical = st.builds(Leaf, st.just("c"), st.just("int64"), SHAPES, num_categories=st.integers(1, 9))
    numeric = st.builds(Leaf, st.just("n"), st.sampled_from(DTYPES), SHAPES)
    return draw(st.lists(st.one_of(categorical, numeric), min_size=1, max_size=3))


@st.composite
def valid_actions(draw: st.DrawFn, leaves: list[Leaf], num_envs: int) -> list[NDArray[Any]]:
    def elements(leaf: Leaf) -> dict[str, Any] | None:
        if leaf.num_categories:
            return {"min_value": 0, "max_value": leaf.num_categories - 1}
        return {"allow_nan": False, "allow_infinity": False} if leaf.dtype.startswith("float") else None

    return [
        draw(hnp.arrays(np.dtype(leaf.dtype).newbyteorder("<"), (num_envs, *leaf.shape), elements=elements(leaf)))
        for leaf in leaves
    ]


def decoded(actions: pb.Actions, step: int, leaves: list[Leaf], num_envs: int) -> list[NDArray[Any]] | None:
    """Returns the checked result of decode_actions; None if it refuses the message. Any other error is a failure."""
    try:
        arrays = decode_actions(actions, step, [ActionLayout.of(leaf, num_envs) for leaf in leaves])
    except ProtocolError:
        return None
    for array, leaf in zip(arrays, leaves, strict=True):
        assert (array.shape, array.dtype) == ((num_envs, *leaf.shape), np.dtype(leaf.dtype))
        if leaf.num_categories:
            assert ((array >= 0) & (array < leaf.num_categories)).all()
        elif array.dtype.kind == "f":
            assert np.isfinite(array).all()
        elif array.dtype.kind == "b":
            assert set(array.tobytes()) <= {0, 1}
    return arrays


@given(data=st.data(), leaves=action_leaves(), num_envs=st.integers(1, 4), step=UINT64)
@REPEATABLE
def test_valid_actions_arrive(data: st.DataObject, leaves: list[Leaf], num_envs: int, step: int) -> None:
    arrays = data.draw(valid_actions(leaves, num_envs))
    message = pb.Actions(step=step, leaves=[array.tobytes() for array in arrays])
    received = decoded(message, step, leaves, num_envs)
    assert received is not None
    for got, sent in zip(received, arrays, strict=True):
        np.testing.assert_array_equal(got, sent)


@given(
    actions=st.builds(pb.Actions, step=st.integers(0, 2), leaves=st.lists(st.binary(max_size=80), max_size=3)),
    leaves=action_leaves(),
    num_envs=st.integers(1, 3),
)
@REPEATABLE
def test_arbitrary_actions_are_valid_or_refused(actions: pb.Actions, leaves: list[Leaf], num_envs: int) -> None:
    decoded(actions, 1, leaves, num_envs)


@given(data=st.data(), leaves=action_leaves(), num_envs=st.integers(1, 3))
@REPEATABLE
def test_damaged_messages_are_valid_or_refused(data: st.DataObject, leaves: list[Leaf], num_envs: int) -> None:
    arrays = data.draw(valid_actions(leaves, num_envs))
    wire = bytearray(
        pb.ActResponse(actions=pb.Actions(step=1, leaves=[a.tobytes() for a in arrays])).SerializeToString()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(wire)))
        wire[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with contextlib.suppress(DecodeError):
        decoded(pb.ActResponse.FromString(bytes(wire)).actions, 1, leaves, num_envs)


@given(data=st.data(), leaves=action_leaves(), num_envs=st.integers(1, 3))
@REPEATABLE
def test_actions_of_another_count_or_step_are_refused(data: st.DataObject, leaves: list[Leaf], num_envs: int) -> None:
    parts = [array.tobytes() for array in data.draw(valid_actions(leaves, num_envs))]
    surplus = data.draw(st.binary(min_size=1, max_size=8))
    assert decoded(pb.Actions(step=2, leaves=parts), 1, leaves, num_envs) is None
    assert decoded(pb.Actions(step=1, leaves=parts[:-1]), 1, leaves, num_envs) is None
    assert decoded(pb.Actions(step=1, leaves=[*parts, surplus]), 1, leaves, num_envs) is None
    assert decoded(pb.Actions(step=1, leaves=[*parts[:-1], parts[-1] + surplus]), 1, leaves, num_envs) is None
    assert decoded(pb.Actions(step=1, leaves=[*parts[:-1], parts[-1][:-1]]), 1, leaves, num_envs) is None


@given(
    chosen=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2), max_size=3),
    offered=st.lists(st.sampled_from((pb.COMPRESSION_NONE, pb.COMPRESSION_LZ4)), max_size=3),
)
@REPEATABLE
def test_a_welcome_chooses_what_was_offered_or_is_refused(chosen: list[Any], offered: list[Any]) -> None:
    welcome = pb.Welcome(protocol_version=PROTOCOL_VERSION, compression=chosen)
    fits = len(chosen) == len(offered) and all(
        choice in (offer, pb.COMPRESSION_NONE) for choice, offer in zip(chosen, offered, strict=False)
    )
    if fits:
        assert check_welcome(welcome, offered) == chosen
    else:
        with pytest.raises(ProtocolError):
            check_welcome(welcome, offered)


@given(version=UINT32.filter(lambda version: version != PROTOCOL_VERSION), minor=UINT32)
@REPEATABLE
def test_a_welcome_of_another_major_version_is_refused_by_its_number(version: int, minor: int) -> None:
    with pytest.raises(VersionError, match=str(version)):
        check_welcome(pb.Welcome(protocol_version=version, protocol_minor=minor), [])


@given(code=st.integers(0, 20) | UINT32, detail=st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
@REPEATABLE
def test_an_end_is_a_refusal_a_disconnection_or_nonsense(code: int, detail: str) -> None:
    end = pb.End(code=code, detail=detail)
    if not 1 <= code <= 16:
        with pytest.raises(ProtocolError, match=str(code)):
            end_error(end)
        return
    status = next(status for status in grpc.StatusCode if status.value[0] == code)
    error = end_error(end)
    assert isinstance(error, RefusedError if status in FINAL_CODES else DisconnectedError)
    assert str(error).startswith(f"{status.name}: ")
    assert str(error).isprintable()


@given(detail=st.text(max_size=300))
@REPEATABLE
def test_the_detail_of_a_bye_is_short_and_printable(detail: str) -> None:
    wire = make_bye(pb.Bye.REASON_ENVIRONMENT_FAILED, detail).SerializeToString()
    received = pb.ActRequest.FromString(wire).bye.detail
    assert len(received) == min(len(detail), MAX_DETAIL_CHARS)
    assert received == "" or received.isprintable()
    for sent, got in zip(detail, received, strict=False):
        assert got == (sent if sent.isprintable() else " ")
