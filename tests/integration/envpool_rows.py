"""EnvPool's vectors give the same rows as EnvPool by itself; test_envpool.py runs this with EnvPool installed."""

from typing import Any

import envpool
import numpy as np
import pytest

from kubebeast_envserver.envs.factory import HostedEnv, StepRows, make_vector_env

# EnvPool states bounds of float32 in float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")

PONG, BREAKOUT, CARTPOLE = (f"envpool/{task}" for task in ("Pong-v5", "Breakout-v5", "CartPole-v1"))
B = 2


def play(env: HostedEnv, num_steps: int, action: int | None = None) -> list[StepRows]:
    """action: the only action; by default another one at every step."""
    num_actions = env.spec_action[0].num_categories
    rows = [env.reset()]
    for step in range(num_steps):
        rows.append(env.step([np.full(env.num_envs, step % num_actions if action is None else action)]))
    return rows


def test_stacks_rewards_and_ends_are_envpools_own() -> None:
    ours = make_vector_env(PONG, B, seed=3)
    theirs = envpool.make_gymnasium("Pong-v5", num_envs=B, seed=3, num_threads=1)
    assert [leaf.row_shape for leaf in ours.spec_observation] == [(4, 84, 84)]
    num_ends = 0
    for step, rows in enumerate(play(ours, 1600)):
        result: Any = theirs.reset() if step == 0 else theirs.step(np.full(B, (step - 1) % 6))
        np.testing.assert_array_equal(rows.observation[0], result[0])
        if step > 0:
            np.testing.assert_array_equal(rows.rewards, result[1])
            np.testing.assert_array_equal(rows.terminated, result[2])
        num_ends += len(rows.episodes)
    assert num_ends >= B


def test_the_step_after_the_last_one_resets_and_ignores_its_action() -> None:
    ended = np.zeros(B, np.bool_)
    for rows in play(make_vector_env(CARTPOLE, B, seed=1), 100)[1:]:
        np.testing.assert_array_equal(rows.is_first, ended)
        assert not rows.rewards[ended].any()
        assert (np.abs(rows.observation[0][ended]) <= 0.05).all(), "where CartPole begins"
        ended = rows.terminated | rows.truncated
    limited = play(make_vector_env(CARTPOLE, B, seed=1, time_limit=3), 4)
    assert [rows.truncated.all() for rows in limited] == [False, False, False, True, False]


def test_a_lost_life_ends_an_episode_of_training_and_no_game() -> None:
    kwargs = {"episodic_life": True}
    rows = play(make_vector_env(BREAKOUT, B, seed=3, env_kwargs=kwargs), 300, action=1)
    num_games = sum(len(each.episodes) for each in rows)
    assert sum(each.terminated.sum() for each in rows) >= 4 * num_games > 0
    whole = play(make_vector_env(BREAKOUT, B, seed=3, env_kwargs=kwargs, evaluation=True), 300, action=1)
    assert sum(each.terminated.sum() for each in whole) == sum(len(each.episodes) for each in whole) > 0


def test_environment_i_has_the_seed_plus_i_and_no_seed_is_drawn() -> None:
    def beginnings(num_envs: int, seed: int | None) -> Any:
        return make_vector_env(CARTPOLE, num_envs, seed=seed).reset().observation[0]

    np.testing.assert_array_equal(beginnings(3, 5)[2], beginnings(1, 7)[0])
    assert (beginnings(1, None) != beginnings(1, None)).all()
    again = make_vector_env(CARTPOLE, 1, seed=5)
    assert (again.reset().observation[0] != again.reset().observation[0]).all()


@pytest.mark.parametrize("task", ["HalfCheetah-v4", "MiniGrid-Empty-5x5-v0"])
def test_other_spaces_play(task: str) -> None:
    env = make_vector_env(f"envpool/{task}", B, seed=1)
    env.reset()
    rows = env.step([np.zeros((B, *leaf.shape), leaf.dtype) for leaf in env.spec_action])
    assert [leaf.shape for leaf in rows.observation] == [(B, *leaf.row_shape) for leaf in env.spec_observation]


@pytest.mark.parametrize(
    ("env", "kwargs", "message"),
    [
        ("envpool/Nowhere-v0", {}, "has no task 'Nowhere-v0'"),
        (PONG, {"batch_size": 1}, "batch_size = 1 is not for envpool/Pong-v5"),
        (PONG, {"reward_clip": True}, "reward_clip = True is not for"),
        (PONG, {"sticky": 1}, "unexpected keyword argument 'sticky'"),
        (PONG, {"frame_skip": "four"}, "'four'}: .*incompatible"),
    ],
)
def test_what_envpool_does_not_have_is_refused(env: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_vector_env(env, B, env_kwargs=kwargs)
