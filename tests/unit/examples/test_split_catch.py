"""The environment of examples/split_catch.py is valid and can be won by an agent that sees ball and paddle."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from examples.split_catch import COLUMNS, ROWS, SplitCatch


def test_gymnasium_finds_nothing_wrong_with_it() -> None:
    check_env(SplitCatch(), skip_render_check=True)


@pytest.mark.parametrize("seed", range(10))
def test_who_sees_ball_and_paddle_catches_every_ball(seed: int) -> None:
    env = SplitCatch()
    observation, _ = env.reset(seed=seed)
    rewards, terminated = [], False
    while not terminated:
        distance = (observation["ball"].argmax() % COLUMNS - observation["paddle"].argmax()) % COLUMNS
        action = 1 if distance == 0 else 2 if distance <= COLUMNS // 2 else 0
        observation, reward, terminated, _, _ = env.step(np.int64(action))
        rewards.append(reward)
    assert rewards == [0.0] * (ROWS - 2) + [1.0]
