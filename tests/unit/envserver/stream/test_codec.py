"""Rows become messages, and messages become actions, if they keep the contract."""

from typing import Any

import numpy as np
import pytest

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.episodes import InfoNumbers
from kubebeast_envserver.rows.rows import StepRows
from kubebeast_envserver.stream.codec import (
    ActionLayout,
    ProtocolError,
    check_welcome,
    decode_actions,
    encode_observations,
    leaf_spec,
    offer_compression,
)
from kubebeast_protos.v1 import actor_pool_pb2 as pb

ACTION = Leaf("", "int64", (), num_categories=4)


def make_rows(observation: list[Any], is_first: list[bool], **fields: Any) -> StepRows:
    num_envs = len(is_first)
    values: dict[str, Any] = {
        "rewards": np.zeros(num_envs, np.float32),
        "terminated": np.zeros(num_envs, np.bool_),
        "truncated": np.zeros(num_envs, np.bool_),
        "episodes": [],
    }
    return StepRows(observation=observation, is_first=np.array(is_first), **(values | fields))


def test_a_stack_travels_whole_at_is_first_only() -> None:
    frames = np.arange(6, dtype=np.uint8).reshape(3, 2)
    leaf = Leaf("", "uint8", (2,), frame_stack=3)
    message = encode_observations(0, make_rows([frames], [False, True, False]), [leaf], [pb.COMPRESSION_NONE])
    assert message.observations.leaves[0] == bytes([0, 1, 2, 3, 2, 3, 2, 3, 4, 5])


def test_interruptions_travel_only_where_there_are_any() -> None:
    leaf, frames = Leaf("", "uint8", ()), np.zeros(2, np.uint8)
    for interrupted, expected in (([False, False], b""), ([False, True], b"\0\1")):
        rows = make_rows([frames], [False, False], interrupted=np.array(interrupted))
        assert encode_observations(1, rows, [leaf], [pb.COMPRESSION_NONE]).observations.interrupted == expected


def test_the_environments_time_travels_only_where_it_is_told() -> None:
    rows = make_rows([np.zeros((1, 2), np.uint8)], [True])
    silent, told = (
        encode_observations(0, rows, [Leaf("", "uint8", (2,))], [pb.COMPRESSION_NONE], env_us) for env_us in (0, 250)
    )
    assert (silent.observations.env_us, told.observations.env_us) == (0, 250)
    assert silent.ByteSize() == told.ByteSize() - 3  # a tag and a varint of two bytes


def test_scalars_and_episodes_travel() -> None:
    rows = make_rows(
        [np.zeros((2, 1), np.float32)],
        [True, False],
        rewards=np.array([0.0, -1.5], np.float32),
        terminated=np.array([False, True]),
        truncated=np.array([False, True]),
        episodes=[(1, -21.0, 99)],
    )
    message = encode_observations(5, rows, [Leaf("", "float32", (1,))], [pb.COMPRESSION_NONE]).observations
    assert message.step == 5
    assert np.frombuffer(message.rewards, "<f4").tolist() == [0.0, -1.5]
    assert (message.is_first, message.terminated, message.truncated) == (b"\1\0", b"\0\1", b"\0\1")
    assert list(message.episodes) == [pb.Episode(env=1, episode_return=-21.0, length=99)]


def test_exact_returns_and_numbers_of_the_info_travel_to_a_learner_that_knows_them() -> None:
    infos = [{"success": True}, {}]
    rows = make_rows(
        [np.zeros(2, np.uint8)],
        [False, False],
        terminated=np.array([True, True]),
        episodes=[(0, 2.0**24 + 1, 99), (1, 0.0, 1)],
        info_of=infos.__getitem__,
    )
    leaf, plain = [Leaf("", "uint8", ())], [pb.COMPRESSION_NONE]
    first, second = encode_observations(1, rows, leaf, plain, info=InfoNumbers(["success"])).observations.episodes
    assert (first.episode_return, first.exact_return, list(first.info)) == (2.0**24, 2.0**24 + 1, [1.0])
    assert second.HasField("exact_return") and list(second.info) == []
    older, _ = encode_observations(1, rows, leaf, plain).observations.episodes
    assert not older.HasField("exact_return") and list(older.info) == []


@pytest.mark.parametrize(
    ("message", "leaf", "reason"),
    [
        (pb.Actions(step=2, leaves=[bytes(16)]), ACTION, "step is 2, expected 1"),
        (pb.Actions(step=1), ACTION, "0 entries for 1"),
        (pb.Actions(step=1, leaves=[bytes(15)]), ACTION, "15 bytes, expected 16"),
        (pb.Actions(step=1, leaves=[np.array([0, 4]).tobytes()]), ACTION, "holds 4.*category below 4"),
        (pb.Actions(step=1, leaves=[np.array([0, -1]).tobytes()]), ACTION, "holds -1.*category below 4"),
        (pb.Actions(step=1, leaves=[np.array([0.0, np.nan]).tobytes()]), Leaf("a", "float64", ()), "finite number"),
        (pb.Actions(step=1, leaves=[b"\0\2"]), Leaf("a", "bool", ()), "neither 0 nor 1"),
    ],
)
def test_actions_that_break_the_contract_are_refused(message: pb.Actions, leaf: Leaf, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_actions(message, 1, [ActionLayout.of(leaf, 2)])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_return_that_is_larger_than_any_float32_travels_as_the_largest(sign: float) -> None:
    rows = make_rows([np.zeros(1, np.uint8)], [False], episodes=[(0, sign * 1e300, 6)])
    message = encode_observations(1, rows, [Leaf("", "uint8", ())], [pb.COMPRESSION_NONE])
    assert message.observations.episodes[0].episode_return == sign * float(np.finfo(np.float32).max)


def test_lz4_is_offered_for_images_only() -> None:
    image, small, vector = Leaf("", "uint8", (84, 84)), Leaf("", "uint8", (31, 33)), Leaf("", "float32", (4096,))
    assert offer_compression(image, True) == pb.COMPRESSION_LZ4
    assert {offer_compression(image, False), offer_compression(small, True), offer_compression(vector, True)} == {
        pb.COMPRESSION_NONE
    }


@pytest.mark.parametrize("chosen", [[], [pb.COMPRESSION_LZ4], [pb.COMPRESSION_NONE] * 2, [pb.COMPRESSION_UNSPECIFIED]])
def test_a_compression_that_was_not_offered_is_refused(chosen: list[pb.Compression]) -> None:
    with pytest.raises(ProtocolError, match="compression"):
        check_welcome(pb.Welcome(protocol_version=1, compression=chosen), [pb.COMPRESSION_NONE])


def test_the_learner_may_decline_compression() -> None:
    chosen = check_welcome(pb.Welcome(protocol_version=1, compression=[pb.COMPRESSION_NONE]), [pb.COMPRESSION_LZ4])
    assert chosen == [pb.COMPRESSION_NONE]


def test_a_leaf_spec_names_everything() -> None:
    spec = leaf_spec(Leaf("a.b", "uint8", (3, 2), frame_stack=4, num_categories=7))
    expected = pb.LeafSpec(path="a.b", dtype="DTYPE_UINT8", shape=[3, 2], frame_stack=4, num_categories=7)
    assert spec == expected
