"""What an environment may return, structure by structure."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_envserver.contract import Contract, ContractError

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (2, 2), np.uint8)
DICT = spaces.Dict({"a": BOX, "b": spaces.Tuple([spaces.Discrete(3, start=2), spaces.MultiBinary(2)])})
GOOD_DICT = {"a": np.zeros(2, np.float32), "b": (2, np.ones(2, np.int8))}


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (BOX, np.zeros(2, np.float32)),
        (BOX, np.full(2, 7.0)),  # out of bounds, as in many environments, and float64
        (BOX, [0, 1]),
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
    assert Contract(space).check_observation(observation) is observation


@pytest.mark.parametrize(
    ("space", "observation", "reason"),
    [
        (BOX, np.zeros(3, np.float32), r"has the shape \[3\], its space has \[2\]"),
        (BOX, None, r"has the shape \[\]"),
        (BOX, [[1], [1, 2]], "is no array"),
        (BOX, np.zeros(2, np.complex64), "has the dtype complex64, its space has float32"),
        (BOX, np.array(["a", "b"]), "has the dtype <U1"),
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
    ],
)
def test_an_observation_that_does_not_fit_is_named(space: spaces.Space[Any], observation: Any, reason: str) -> None:
    with pytest.raises(ContractError, match=reason) as caught:
        Contract(space).check_observation(observation)
    assert caught.value.kind == "observation"


@pytest.mark.parametrize("reward", [1, True, 2.5, np.float32(2.5), np.array(3.0), np.finfo(np.float32).max])
def test_any_finite_number_is_a_reward(reward: Any) -> None:
    step = Contract(BOX).check_step(np.zeros(2, np.float32), reward, np.bool_(True), False, {})
    assert step[1:] == (float(reward), True, False)


@pytest.mark.parametrize("reward", [None, "1", b"1", [1.0, 2.0], float("nan"), -float("inf"), 1e39, 1j])
def test_what_is_no_finite_number_is_no_reward(reward: Any) -> None:
    with pytest.raises(ContractError, match="must be a finite float32") as caught:
        Contract(BOX).check_step(np.zeros(2, np.float32), reward, False, False, {})
    assert caught.value.kind == "reward"


@pytest.mark.parametrize(("name", "flags"), [("terminated", (1, False)), ("truncated", (False, None))])
def test_a_flag_that_is_no_bool_is_named(name: str, flags: tuple[Any, Any]) -> None:
    with pytest.raises(ContractError, match=f"{name} = (1|None): it must be a bool") as caught:
        Contract(BOX).check_step(np.zeros(2, np.float32), 0.0, *flags, {})
    assert caught.value.kind == "exception"
