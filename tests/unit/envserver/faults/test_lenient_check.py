"""Every fault in an environment's return value is reported, and the usable parts are used."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_envserver.faults.lenient_check import LenientCheck
from kubebeast_envserver.faults.space_checks import space_violations
from kubebeast_envserver.rows.action_mask import ActionMask, find_action_mask

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
GOOD = np.full(2, 0.5, np.float32)
NAN = np.full(2, np.nan, np.float32)


def lenient(space: spaces.Space[Any] = BOX, mask: ActionMask | None = None) -> tuple[LenientCheck, list[str]]:
    told: list[str] = []
    return LenientCheck(space, mask, told.append), told


def test_what_is_right_is_passed_on() -> None:
    check, told = lenient()
    assert check.check_reset((GOOD, {})) == (GOOD, 0.0, False, False, {})
    assert check.check_step((GOOD, np.float64(2.0), np.bool_(True), False, {"score": 1})) == (
        GOOD,
        2.0,
        True,
        False,
        {"score": 1},
    )
    assert told == []


def test_every_violation_of_a_step_is_told() -> None:
    check, told = lenient()
    observation, reward, terminated, truncated, _ = check.check_step((NAN, float("inf"), "yes", True, {}))
    assert (observation.tolist(), reward, terminated, truncated) == ([0.0, 0.0], 0.0, False, True)
    assert [text.split()[:4] for text in told] == [
        ["step", "returned", "terminated", "="],
        ["step", "returned", "the", "reward"],
        ["the", "observation", "holds", "nan,"],
    ]


def test_the_interface_of_gym_is_told_and_understood() -> None:
    check, told = lenient()
    assert check.check_reset(GOOD)[0] is GOOD
    assert check.check_step((GOOD, 1.0, True, {})) == (GOOD, 1.0, True, False, {})
    assert len(told) == 2 and all("gym's interface before 0.26" in text for text in told)
    assert told[0].startswith("reset: reset returned")


@pytest.mark.parametrize("result", [None, (), (GOOD,), 5])
def test_what_cannot_be_understood_is_a_row_of_zeros(result: Any) -> None:
    check, told = lenient()
    assert check.check_reset(result)[0].tolist() == check.check_step(result)[0].tolist() == [0.0, 0.0]
    assert len(told) == 2


def test_a_structure_gets_zeros_of_its_own_form() -> None:
    check, told = lenient(spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "mode": spaces.Discrete(3)}))
    observation = check.check_step(({"image": np.zeros((3, 3), np.uint8), "mode": 1}, 0.0, False, False, {}))[0]
    assert observation["image"].tolist() == [[0, 0], [0, 0]] and observation["mode"] == 0
    assert told == ["the observation at image has the shape [3, 3], its space has [2, 2]"]


def test_a_mask_that_allows_nothing_is_told_where_an_action_follows() -> None:
    space = spaces.Dict({"action_mask": spaces.MultiBinary(3), "x": BOX})
    check, told = lenient(space, find_action_mask(space, spaces.Discrete(3))[1])
    observation = {"action_mask": np.zeros(3, np.int8), "x": GOOD}
    assert check.check_step((observation, 0.0, True, False, {}))[0] is observation
    assert told == []
    check.check_step((observation, 0.0, False, False, {}))
    check.check_reset((observation, {}))
    text = "the action mask at 'action_mask' allows no category of choice 0"
    assert [each.partition(",")[0] for each in told] == [text, f"reset: {text}"]


def test_every_part_of_a_space_that_cannot_be_sent_is_told() -> None:
    text, halves = spaces.Text(5), spaces.Box(-1.0, 1.0, (2,), np.float16)
    told = space_violations(spaces.Dict({"good": BOX, "inner": spaces.Tuple([text, BOX]), "small": halves}))
    assert [violation.split(" Text")[0].split(" Box")[0] for violation in told] == [
        "at 'inner': at 0: the space",
        "at 'small': the space",
    ]
    assert space_violations(BOX) == []


def test_a_violation_of_the_whole_is_told_where_its_parts_have_none() -> None:
    (told,) = space_violations(spaces.Dict({"a": spaces.Dict({"b": BOX}), "a.b": BOX}))
    assert told.startswith("two leaves share the path 'a.b'")
