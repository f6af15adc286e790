"""Agents of PettingZoo that take turns become rows, which wait for the turns of others."""

from typing import Any

import numpy as np
import pytest

from kubebeast_common.backoff import Backoff
from kubebeast_envserver.envs.factory import EnvironmentFailure, StepRows, make_vector_env
from tests.integration.toll import NUM_ACTIONS, TOLL

LETTERS = {
    (True, False, False, False): "F",
    (True, False, True, False): ".",
    (False, False, False, False): "i",
    (False, False, False, True): "w",
    (False, True, False, False): "t",
    (False, False, True, False): "!",
}
"""First, absent, inner, waiting, terminated and interrupted rows, by is_first, terminated, truncated and waiting."""


def toll(num_agents: int = 2, num_envs: int = 0, **kwargs: Any) -> Any:
    return make_vector_env(TOLL, num_envs or num_agents, env_kwargs={"num_agents": num_agents, **kwargs})


def word(rows: StepRows) -> str:
    waiting = rows.waiting if rows.waiting.size else np.zeros_like(rows.is_first)
    flags = np.stack([rows.is_first, rows.terminated, rows.truncated, waiting], axis=1)
    return "".join(LETTERS[tuple(row)] for row in flags.tolist())


def play(env: Any, num_steps: int) -> list[StepRows]:
    return [env.reset(), *(env.step([np.arange(env.num_envs) % NUM_ACTIONS]) for _ in range(num_steps))]


def test_an_agent_waits_from_its_first_turn_on_while_it_is_the_turn_of_another() -> None:
    env = toll()
    assert (env.num_agents, env.takes_turns) == (2, True)
    assert [word(rows) for rows in play(env, 7)] == ["F.", "wF", "iw", "wi", "iw", "tt", "F.", "wF"]


def test_rewards_until_the_next_turn_belong_to_the_last_action() -> None:
    rewards = [rows.rewards.tolist() for rows in play(toll(num_agents=3, num_moves=7), 7)]
    nothing = [0, 0, 0]
    inner = [[2 + 3, 0, 0], [0, 3 + 4, 0], [0, 0, 4 + 5], [5 + 6, 0, 0]]
    assert rewards == [nothing, nothing, nothing, *inner, [0, 6 + 7, 7]]


def test_an_episode_is_that_of_one_agent_and_its_length_counts_its_own_turns() -> None:
    *_, last = play(toll(), 5)
    assert last.episodes == [(0, 2.0 + 4.0, 3), (1, 3.0 + 5.0, 2)]


def test_only_the_action_of_the_agent_with_the_turn_is_taken() -> None:
    env = toll()
    play(env, 4)
    (game,) = (guarded._env._env for guarded in env._envs._envs)
    assert game.taken == [("agent_0", 0), ("agent_1", 1), ("agent_0", 0), ("agent_1", 1)]


def test_an_agent_that_ends_before_the_others_is_absent_until_the_reset() -> None:
    env = toll(num_agents=3, num_moves=8, ends={"4": [1]})
    words = ["F..", "wF.", "wwF", "iww", "wti", "i.w", "w.i", "i.w", "t.t", "F.."]
    assert [word(rows) for rows in play(env, 9)] == words


def test_an_agent_that_ends_before_its_first_turn_has_no_episode() -> None:
    rows = play(toll(num_agents=3, num_moves=4, ends={"1": [2]}), 5)
    assert [word(each) for each in rows] == ["F..", "wF.", "iw.", "wi.", "tt.", "F.."]
    assert [env for env, _, _ in rows[4].episodes] == [0, 1]


def test_a_waiting_row_has_zeros_and_a_mask_that_allows_all() -> None:
    env = make_vector_env("pettingzoo/classic/tictactoe_v3", 2, seed=1)
    env.reset()
    rows = env.step([np.array([4, 0])])
    mask, board = rows.observation
    assert rows.waiting.tolist() == [True, False]
    assert mask[0].all() and not board[0].any() and board[1].any() and not mask[1].all()


@pytest.mark.parametrize("name", ["classic/tictactoe_v3", "pettingzoo.classic.tictactoe.tictactoe"])
def test_a_game_has_an_id_by_its_registration_and_by_its_module(name: str) -> None:
    env = make_vector_env(f"pettingzoo/{name}", 4, seed=1)
    assert (env.num_agents, env.takes_turns) == (2, True)
    env.close()


def test_a_game_that_fails_is_interrupted_with_the_agents_that_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "next_delay_s", lambda backoff: 0.0)
    env = toll(num_agents=2, num_envs=4, num_moves=3, fails_at=2)
    words = [word(rows) for rows in play(env, 3)]
    assert words == ["F.F.", "wFwF", "!!!!", "F.F."]


def test_a_module_without_an_environment_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="parallel_env"):
        make_vector_env("pettingzoo/json", 2)


def test_another_class_is_refused() -> None:
    with pytest.raises((ValueError, EnvironmentFailure), match=r"no class of a pettingzoo\.ParallelEnv or AECEnv"):
        make_vector_env("json:pettingzoo/JSONDecoder", 2)
