"""Return values of environments are checked against the spaces, structure by structure."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (2, 2), np.uint8)
DICT = spaces.Dict({"a": BOX, "b": spaces.Tuple([spaces.Discrete(3, start=2), spaces.MultiBinary(2)])})
GOOD_DICT = {"a": np.zeros(2, np.float32), "b": (2, np.ones(2, np.int8))}
DOUBLE = spaces.Box(-np.inf, np.inf, (2,), np.float64)
SHORT = spaces.Box(0, 100, (2,), np.int16)
ZEROS = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (BOX, np.zeros(2, np.float32)),
        (BOX, np.full(2, 7.0)),  # float64 and out of bounds, as in many environments
        (BOX, [0, 1]),
        (BOX, np.full(2, np.finfo(np.float32).max)),
        (BOX, np.array([2**62, -(2**62)])),
        (DOUBLE, np.array([-3e38, 3e38])),
        (spaces.Box(-1.0, 1.0, (0, 3), np.float32), np.zeros((0, 3), np.float32)),
        (SHORT, np.array([-(2**15), 2**15 - 1])),
        (IMAGE, np.zeros((2, 2), np.uint8)),
        (spaces.Discrete(3), 2),
        (spaces.Discrete(3), np.int32(2)),
        (spaces.Discrete(3), np.array(2)),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2], np.int32)),
        (spaces.MultiDiscrete([2, 3]), [1, 2]),
        (DICT, GOOD_DICT),
        (DICT, {**GOOD_DICT, "more": "is ignored"}),
    ],
)
def test_an_observation_that_fits_its_space_passes_as_it_is(space: spaces.Space[Any], observation: Any) -> None:
    assert EnvCheck(space).check_observation(observation) is observation


@pytest.mark.parametrize(
    ("space", "observation", "reason"),
    [
        (BOX, np.zeros(3, np.float32), r"has the shape \[3\], its space has \[2\]"),
        (BOX, None, r"has the shape \[\]"),
        (BOX, [[1], [1, 2]], "is no array"),
        (BOX, np.zeros(2, np.complex64), "has the dtype complex64, its space has float32"),
        (BOX, np.array(["a", "b"]), "has the dtype <U1"),
        (BOX, np.array([0.0, None]), "has the dtype object"),
        (BOX, np.array([0.0, np.nan], np.float32), "holds nan, which is no finite float32"),
        (BOX, [0.0, -np.inf], "holds -inf, which is no finite float32"),
        (BOX, np.array([0.0, 1e39]), r"holds 1e\+39, which is no finite float32"),
        (DOUBLE, np.array([0.0, -1e39]), r"holds -1e\+39, which is no finite float32"),
        (DOUBLE, np.array([np.nan, 0.0]), "holds nan"),
        (SHORT, np.array([0, 2**15]), "holds 32768, which its dtype int16 cannot hold"),
        (IMAGE, np.zeros((2, 2), np.int64), "has the dtype int64, its space has uint8"),
        (spaces.Discrete(3), 3, r"is 3, which is not in Discrete\(3\)"),
        (spaces.Discrete(3), -1, "is -1"),
        (spaces.Discrete(3), 1.0, "has the dtype float64, its space has int64"),
        (spaces.MultiDiscrete([2, 3]), np.array([2, 0]), "which is not in MultiDiscrete"),
        (spaces.MultiBinary(2), np.array([0, 2], np.int8), "which is not in MultiBinary"),
        (DICT, np.zeros(2), "is array.*, not a mapping with the keys a, b"),
        (DICT, {"a": GOOD_DICT["a"]}, "not a mapping with the keys a, b"),
        (DICT, {**GOOD_DICT, "b": (2,)}, "observation at b is .*, not a tuple of 2"),
        (DICT, {**GOOD_DICT, "b": (5, np.ones(2, np.int8))}, "observation at b.0 is 5"),
        (DICT, {**GOOD_DICT, "a": np.zeros(1, np.float32)}, r"observation at a has the shape \[1\]"),
        (DICT, {**GOOD_DICT, "a": np.array([np.inf, 0.0], np.float32)}, "observation at a holds inf"),
    ],
)
def test_an_observation_that_does_not_fit_is_named(space: spaces.Space[Any], observation: Any, reason: str) -> None:
    with pytest.raises(EnvCheckError, match=reason) as caught:
        EnvCheck(space).check_observation(observation)
    assert caught.value.kind == "observation"


@pytest.mark.parametrize(
    "reward",
    [
        1,
        True,
        2.5,
        np.float32(2.5),
        np.array(3.0),
        np.array([3.0], np.float32),
        torch.tensor(3.0),
        np.finfo(np.float32).max,
    ],
)
def test_any_finite_number_is_a_reward(reward: Any) -> None:
    step = EnvCheck(BOX).check_step((ZEROS, reward, np.bool_(True), False, {}))
    assert step[1:] == (float(np.asarray(reward).item()), True, False, {})


@pytest.mark.parametrize(
    "reward", [None, "1", b"1", [1.0, 2.0], np.ones(2), float("nan"), -float("inf"), np.float64("inf"), 1e39, 1j]
)
def test_what_is_no_finite_number_is_no_reward(reward: Any) -> None:
    with pytest.raises(EnvCheckError, match="must be a finite float32") as caught:
        EnvCheck(BOX).check_step((ZEROS, reward, False, False, {}))
    assert caught.value.kind == "reward"


@pytest.mark.parametrize(
    "flag", [True, 1, np.bool_(True), np.int64(1), np.array(True), np.array([True]), torch.tensor(1)]
)
def test_whatever_says_yes_or_no_is_a_flag(flag: Any) -> None:
    contract = EnvCheck(BOX)
    assert contract.check_step((ZEROS, 0.0, flag, not flag, {}))[2:4] == (True, False)
    assert contract.check_step([ZEROS, 0.0, not flag, flag, {}])[2:4] == (False, True)


@pytest.mark.parametrize(("name", "flags"), [("terminated", (2, False)), ("truncated", (False, None))])
def test_a_flag_that_says_neither_yes_nor_no_is_named(name: str, flags: tuple[Any, Any]) -> None:
    with pytest.raises(EnvCheckError, match=f"{name} = (2|None): it must be a bool") as caught:
        EnvCheck(BOX).check_step((ZEROS, 0.0, *flags, {}))
    assert caught.value.kind == "exception"


def test_a_step_of_the_old_gym_interface_is_told_what_to_do() -> None:
    with pytest.raises(EnvCheckError, match=r"step returned 4 values .*before 0\.26.*terminated, truncated, info"):
        EnvCheck(BOX).check_step((ZEROS, 0.0, False, {}))


@pytest.mark.parametrize("result", [ZEROS, {"a": ZEROS}, (ZEROS, ZEROS, ZEROS)])
def test_a_reset_of_the_old_gym_interface_is_told_what_to_do(result: Any) -> None:
    with pytest.raises(EnvCheckError, match=r"reset returned .*, not \(observation, info\).*before 0\.26"):
        EnvCheck(BOX).check_reset(result)


@pytest.mark.parametrize("result", [None, (), (ZEROS, 0.0, False, False, {}, {}), ZEROS])
def test_a_step_that_returns_anything_else_is_named(result: Any) -> None:
    with pytest.raises(EnvCheckError, match=r"step returned .*, not \(observation, reward"):
        EnvCheck(BOX).check_step(result)


def test_the_observation_of_a_reset_is_checked_as_that_of_a_step() -> None:
    assert EnvCheck(BOX).check_reset((ZEROS, {})) == (ZEROS, 0.0, False, False, {})
    with pytest.raises(EnvCheckError, match="holds nan"):
        EnvCheck(BOX).check_reset((ZEROS * np.nan, {}))
