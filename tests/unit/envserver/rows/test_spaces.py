"""Spaces are flattened to leaves, and unsupported ones are refused."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_common.spec.leaves import DTYPES, Leaf
from kubebeast_envserver.rows.advice import collected
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError, flatten, leaves_of
from kubebeast_envserver.rows.texts import without_texts

boxes = st.builds(
    lambda shape, dtype: spaces.Box(0, 1, tuple(shape), np.dtype(dtype).type),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from([dtype for dtype in DTYPES if dtype != "bool"]),
)
discretes = st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 5), st.integers(-3, 3))
multi_discretes = st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 4), min_size=1, max_size=3))
multi_binaries = st.builds(spaces.MultiBinary, st.integers(1, 4))
leaf_spaces = boxes | discretes | multi_discretes | multi_binaries
any_space = st.recursive(
    leaf_spaces,
    lambda entries: (
        st.dictionaries(st.sampled_from("abcd"), entries, min_size=1, max_size=3).map(spaces.Dict)
        | st.lists(entries, min_size=1, max_size=3).map(spaces.Tuple)
    ),
    max_leaves=5,
)

KEYS_WITHOUT_ORDER: Any = {1: spaces.Discrete(2), "a": spaces.Discrete(2)}


def sample_batch(space: spaces.Space[Any], num_envs: int) -> Any:
    empty: Any = create_empty_array(space, n=num_envs)
    return concatenate(space, [space.sample() for _ in range(num_envs)], empty)


@given(space=any_space, num_envs=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_a_flattened_batch_has_the_shapes_and_types_of_its_leaves(space: spaces.Space[Any], num_envs: int) -> None:
    batch = sample_batch(space, num_envs)
    leaves, arrays = leaves_of(space), flatten(space, batch)
    for leaf, array in zip(leaves, arrays, strict=True):
        assert array.shape == (num_envs, *leaf.row_shape)
        assert array.dtype == np.dtype(leaf.dtype)
        assert array.flags.c_contiguous
        if leaf.num_categories:
            assert ((array >= 0) & (array < leaf.num_categories)).all()


def test_a_structure_is_flattened_by_sorted_key_and_index() -> None:
    space = spaces.Dict(
        {
            "z": spaces.Discrete(3, start=5),
            "agent": spaces.Tuple([spaces.Box(0, 255, (2, 2), np.uint8), spaces.MultiDiscrete([2, 4])]),
        }
    )
    assert leaves_of(space) == [
        Leaf("agent.0", "uint8", (2, 2)),
        Leaf("agent.1.0", "int64", (), num_categories=2),
        Leaf("agent.1.1", "int64", (), num_categories=4),
        Leaf("z", "int64", (), num_categories=3),
    ]


def test_categories_start_at_zero_on_the_wire() -> None:
    assert flatten(spaces.Discrete(3, start=-1), np.array([-1, 1]))[0].tolist() == [0, 2]


def test_a_frame_stack_is_part_of_the_row_shape() -> None:
    assert Leaf("", "uint8", (84, 84), frame_stack=4).row_shape == (4, 84, 84)
    assert Leaf("", "uint8", (84, 84)).row_shape == (84, 84)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Dict({"mission": spaces.Text(8)}), "at 'mission': .*Text space.*wrapper"),
        (spaces.Sequence(spaces.Discrete(2)), "the space .*Sequence space"),
        (spaces.Box(0, 1, (2,), np.float16), "dtype float16.*float32"),
        (spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}), "share the path 'a.b'"),
        (spaces.Dict(KEYS_WITHOUT_ORDER), "the space .*keys of several types"),
        (spaces.Dict({}), "so nothing that could be sent"),
        (spaces.Tuple([]), "nothing that could be sent"),
        (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Dict({})}), "at 'b': .* has no entries"),
        (spaces.Dict({"a": spaces.Tuple([spaces.Discrete(2), spaces.Tuple([])])}), "at 'a.1': .* has no entries"),
        (spaces.Dict({"g": spaces.Graph(spaces.Discrete(2), None)}), "at 'g': .* is a Graph space"),
        (spaces.Dict({"o": spaces.OneOf([spaces.Discrete(2)])}), "at 'o': .* is a OneOf space"),
        (spaces.Dict({"m": spaces.MultiDiscrete(np.full(10**5, 3))}), "at 'm': .*100,000 entries .*at most 256"),
        (spaces.Tuple([spaces.Discrete(2)] * 257), "more than 256 leaves"),
    ],
)
def test_a_space_that_cannot_be_sent_is_refused(space: spaces.Space[Any], message: str) -> None:
    with pytest.raises(UnsupportedSpaceError, match=message):
        leaves_of(space)


class Box:
    """A space of another library."""

    __module__ = "gym.spaces.box"


def test_a_space_of_another_library_is_named_with_its_module() -> None:
    space: Any = Box()
    with pytest.raises(UnsupportedSpaceError, match=r"is a space of gym \(gym\.spaces\.box\.Box\), not of gymnasium"):
        leaves_of(space)
    nothing: Any = None
    with pytest.raises(UnsupportedSpaceError, match=r"None \(builtins\.NoneType\) is no space of gymnasium"):
        leaves_of(nothing)


def test_bytes_that_are_smaller_than_255_travel_divided_by_their_bounds() -> None:
    space = spaces.Box(0, np.array([[10, 0], [5, 3]], np.uint8), (2, 2), np.uint8)
    assert leaves_of(space) == [Leaf("", "float32", (2, 2))]
    (array,) = flatten(space, np.array([[[5, 0], [5, 3]]], np.uint8))
    np.testing.assert_allclose(array, [[[0.5, 0.0], [1.0, 1.0]]])
    assert leaves_of(spaces.Box(0, 255, (2, 2), np.uint8)) == [Leaf("", "uint8", (2, 2))]


def test_texts_beside_numbers_are_left_out_and_advised_of() -> None:
    number = spaces.Box(0.0, 1.0, (2,))
    space = spaces.Dict({"a": number, "mission": spaces.Text(8), "more": spaces.Dict({"hint": spaces.Text(2)})})
    with collected() as advice:
        assert without_texts(space) == spaces.Dict({"a": number})
    assert [text.partition(" is a text")[0] for text in advice] == [
        "the observation at 'mission'",
        "the observation at 'more.hint'",
    ]
    words = spaces.Dict({"mission": spaces.Text(8)})
    with collected() as advice:
        assert without_texts(words) is words and without_texts(number) is number
    assert advice == []
