"""Environments that say which actions are legal."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_envserver import ActionMaskFromInfo, EnvironmentFailure, make_vector_env
from kubebeast_envserver.rows.spaces import Leaf

LENGTH = 4
ENV = f"{__name__}:Chess-v0"


class Chess(gymnasium.Env[dict[str, Any], Any]):
    """An episode of LENGTH steps. Without legal actions at its end, and at the step `stuck_at`."""

    def __init__(self, stuck_at: int = LENGTH, key: str = "action_mask") -> None:
        board = spaces.Box(0.0, 1.0, (2,))
        self.observation_space = spaces.Dict({"board": board, key: spaces.Box(0, 1, (5,), np.int8)})
        self.action_space = spaces.MultiDiscrete([2, 3])
        self._stuck = {stuck_at, LENGTH}
        self._key = key
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._num_steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self._num_steps += 1
        return self._observation(), 0.0, self._num_steps == LENGTH, False, {}

    def _observation(self) -> dict[str, Any]:
        mask = [1, 0, 0, 0, 0] if self._num_steps in self._stuck else [0, 1, 0, 1, 1]
        return {"board": np.zeros(2, np.float32), self._key: np.array(mask, np.int8)}


gymnasium.register("Chess-v0", entry_point=f"{__name__}:Chess", disable_env_checker=True)
ACTIONS = [np.zeros(1, np.int64), np.zeros(1, np.int64)]


def test_the_mask_travels_as_bools_and_frees_what_nobody_takes() -> None:
    env = make_vector_env(ENV, 1)
    assert env.spec_observation[0] == Leaf("action_mask", "bool", (5,), is_action_mask=True)
    masks = [env.reset().observation[0]]
    masks += [env.step(ACTIONS).observation[0] for _ in range(LENGTH)]
    assert {mask.dtype for mask in masks} == {np.dtype(np.bool_)}
    assert masks[0].astype(int).tolist() == [[0, 1, 0, 1, 1]]
    assert masks[LENGTH].astype(int).tolist() == [[1, 0, 1, 1, 1]]


def test_an_environment_without_a_legal_action_fails_and_says_so() -> None:
    env = make_vector_env(ENV, 1, env_kwargs={"stuck_at": 2})
    env.reset()
    env.step(ACTIONS)
    rows = env.step(ACTIONS)
    assert rows.interrupted.tolist() == [True]
    assert rows.observation[0].all(), "a row that only keeps its place leaves the learner a choice"
    with pytest.raises(EnvironmentFailure, match=r"environment 0 failed: the action mask allows .* choice 1"):
        rows.require_whole()


def test_a_leaf_of_another_name_is_an_observation_like_others() -> None:
    env = make_vector_env(ENV, 1, env_kwargs={"key": "legal"})
    assert env.spec_observation[1] == Leaf("legal", "int8", (5,))


def test_a_mask_in_info_becomes_a_part_of_the_observation() -> None:
    env = ActionMaskFromInfo(gymnasium.make("Taxi-v4"))
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert observation["action_mask"].tolist() == info["action_mask"].tolist()
    observation, *_, info = env.step(int(observation["action_mask"].argmax()))
    assert observation["action_mask"].tolist() == info["action_mask"].tolist()


def test_an_info_without_a_mask_names_what_there_is() -> None:
    env = ActionMaskFromInfo(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="info has no 'action_mask', only nothing"):
        env.reset()


def test_a_mask_in_info_needs_one_choice() -> None:
    with pytest.raises(ValueError, match="needs a Discrete action space, not Box"):
        ActionMaskFromInfo(gymnasium.make("Pendulum-v1"))
