"""Rows that are too large are refused by their size, before memory is allocated."""

import re
from pathlib import Path

import pytest

from kubebeast_common.spec import limits
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.limits import bytes_of_row, check_limits, message_violation
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError

ACTION = [Leaf("", "int64", (), num_categories=2)]
NOT_OF_THE_CORE = {"MAX_CATEGORIES", "MAX_MESSAGE_BYTES"}
"""Limits of a model's memory, and of a setting."""
CORE = Path(__file__).resolve().parents[4] / "native" / "src" / "core"


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        ([Leaf("k" * 300, "float32", (2,))], ACTION, "observation at 'kkk.*its path has 300 bytes, at most 255"),
        ([Leaf("\u0442" * 200, "float32", (2,))], ACTION, "its path has 400 bytes"),
        ([Leaf("a", "float32", (1,) * 33)], ACTION, "at 'a': it has 33 dimensions, at most 32"),
        ([Leaf("a", "uint8", (2,), frame_stack=300)], ACTION, "a stack of 300 frames, at most 256"),
        ([Leaf("a", "uint8", (2, 2**60))], ACTION, "at 'a': a row of it has 2,305,843,009,213,693,952 bytes"),
        ([Leaf(str(i), "uint8", (1,)) for i in range(257)], ACTION, "the observation has 257 leaves, at most 256"),
        ([Leaf("room", "int64", (), num_categories=2**31)], ACTION, "has 2,147,483,648 categories, and at most"),
        (
            [Leaf("a", "uint8", (1,)), Leaf("b", "int64", (), num_categories=2**31)],
            ACTION,
            "2,147,483,648 categories, 2,147,483,648 of them at 'b'",
        ),
        ([Leaf("a", "uint8", (1,))], [Leaf("", "int64", (), num_categories=10**8)], "the action has 100,000,000 cat"),
        ([Leaf("a", "uint8", (1,))], [Leaf("", "int8", (10**6,), num_categories=2)], "the action has 2,000,000 cat"),
    ],
)
def test_what_no_learner_takes_is_refused_with_its_leaf(
    observation: list[Leaf], action: list[Leaf], message: str
) -> None:
    with pytest.raises(UnsupportedSpaceError, match=message):
        check_limits(observation, action, 1)


def test_rows_of_all_environments_together_have_a_limit() -> None:
    image = [Leaf("eye", "uint8", (4000, 4000, 3))]
    check_limits(image, ACTION, 44)
    with pytest.raises(
        UnsupportedSpaceError, match=r"num_envs = 45: .*the largest leaf is uint8 \[4000, 4000, 3\] at 'eye'"
    ):
        check_limits(image, ACTION, 45)


def test_a_row_that_is_larger_than_a_message_names_the_setting_that_helps() -> None:
    image = [Leaf("", "uint8", (5000, 5000, 3))]
    assert bytes_of_row(image, ACTION) == 75_000_008
    violation = message_violation(image, ACTION)
    assert violation is not None and "max_message_mib = 64" in violation and "--max-message-mib 72 or" in violation
    assert message_violation(image, ACTION, 72) is None


def test_the_native_core_has_the_same_limits() -> None:
    sources = (CORE / name for name in ("tensors/tensor_spec.cc", "tensors/tensor_spec.h", "wire/protocol.h"))
    text = "".join(source.read_text() for source in sources)
    native = {name: int(value) for name, value in re.findall(r"constexpr std::\w+ kMax(\w+) = (\d+);", text)}
    ours = {
        "".join(word.capitalize() for word in name.split("_")[1:]): value
        for name, value in vars(limits).items()
        if name.startswith("MAX_") and name not in NOT_OF_THE_CORE
    }
    assert native == ours
