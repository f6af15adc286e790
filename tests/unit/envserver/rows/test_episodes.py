"""Numbers in the info of the last step of an episode are found by their keys, in every kind of environment."""

import math
from typing import Any

import numpy as np
import pytest

from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_envserver.rows.advice import collected
from kubebeast_envserver.rows.episodes import InfoNumbers, info_of_one
from kubebeast_envserver.rows.rows import StepRows
from tests.integration.informed_env import LENGTH, info_after

MODULE = "tests.integration.informed_env:"
NAN = math.nan


def row(info: Any) -> StepRows:
    no, yes = np.zeros(1, np.bool_), np.ones(1, np.bool_)
    return StepRows([np.zeros((1, 2))], np.zeros(1, np.float32), yes, no, no, [(0, 1.0, 3)], info_of=lambda env: info)


def numbers_of(env_id: str, keys: list[str], num_steps: int) -> list[list[float]]:
    """Returns the numbers of the episodes that end, in order."""
    env = make_vector_env(env_id, 2)
    reader = InfoNumbers(keys)
    env.reset()
    found = []
    for _ in range(num_steps):
        rows = env.step([np.zeros(2, np.int64)])
        found += [list(reader.read(rows, index)) for index, *_ in rows.episodes]
    env.close()
    return found


@pytest.mark.parametrize("env_id", ["Informed-v0", "vector/Informed-v0"])
def test_each_environment_of_a_vector_has_its_own(env_id: str) -> None:
    first, second = [0.0, LENGTH, 0.5, NAN], [1.0, LENGTH, 0.5, 1.5]

    found = numbers_of(MODULE + env_id, ["success", "step", "found/wood", "time"], 2 * LENGTH + 2)

    np.testing.assert_equal(found, [first, first, second, second])


def test_each_agent_has_those_of_its_own_last_step() -> None:
    found = numbers_of(f"{MODULE}pettingzoo/InformedPair", ["success", "step"], 2 * LENGTH + 2)

    assert found == [[0.0, LENGTH - 1], [0.0, LENGTH], [1.0, LENGTH - 1], [1.0, LENGTH]]


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("success", 1.0),
        ("step", 3.0),
        ("found/wood", 0.5),
        ("found/stone", 2.0),
        ("a/b", 7.0),
        ("bad", NAN),
        ("text", NAN),
        ("many", NAN),
        ("found", NAN),
        ("found/gold", NAN),
        ("success/x", NAN),
        ("missing", NAN),
    ],
)
def test_a_key_finds_a_finite_number_or_none(key: str, number: float) -> None:
    found = InfoNumbers([key, "success"]).read(row(info_after(3, game=1)), 0)

    np.testing.assert_equal(found, (number, 1.0))


@pytest.mark.parametrize("info", [{}, None, {"other": 1}, [], 3])
def test_an_info_without_any_number_is_empty(info: Any) -> None:
    with collected():
        assert InfoNumbers(["success", "score"]).read(row(info), 0) == ()


def test_a_key_without_a_number_is_reported_once_with_those_that_have_one() -> None:
    reader = InfoNumbers(["sucess", "success"])
    with collected() as texts:
        for game in range(4):
            reader.read(row(info_after(1, game)), 0)

    assert texts == [
        "log_info = 'sucess': no number in the info of an episode's last step, which has numbers at: "
        "success, step, found/wood, found/stone, a/b"
    ]


def test_no_keys_read_nothing() -> None:
    assert InfoNumbers([]).read(row(info_after(1, game=1)), 0) == ()


def test_an_environment_of_a_vector_has_the_keys_that_its_mask_marks() -> None:
    infos = {
        "score": np.array([1.0, 2.0]),
        "_score": np.array([False, True]),
        "nested": {"x": np.array([3, 4]), "_x": np.array([True, True])},
        "_nested": np.array([True, True]),
        "_own": np.array([5, 6]),
        "scalar": 3,
    }

    assert info_of_one(infos, 0) == {"nested": {"x": 3}, "_own": 5}
    assert info_of_one(infos, 1) == {"score": 2.0, "nested": {"x": 4}, "_own": 6}


def test_a_game_of_atari_has_its_counters() -> None:
    env = make_vector_env("PongNoFrameskip-v4", 2)
    rows = env.reset()
    rows = env.step([np.zeros(2, np.int64)])
    env.close()

    assert InfoNumbers(["lives"]).read(rows, 1) == (0.0,)
