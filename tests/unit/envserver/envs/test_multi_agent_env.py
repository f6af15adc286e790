"""Agents of PettingZoo become rows."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper

from kubebeast_common.backoff import Backoff, FaultPolicy
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.envs.agents.joint_env import JointEnv
from kubebeast_envserver.envs.factory import (
    EnvironmentFailure,
    StepRows,
    find_action_meanings,
    make_rendered_env,
    make_vector_env,
    num_agents_of,
    resolve_config,
)
from kubebeast_envserver.rows.rows import AllQuarantined
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError
from kubebeast_envserver.rows.stream_status import StreamStatus
from tests.integration.hunt import HUNT, NUM_ACTIONS, NUM_AGENTS, Hunt

LETTERS = {
    (True, False, False, False): "F",
    (True, False, True, True): ".",
    (False, False, False, False): "i",
    (False, True, False, False): "t",
    (False, False, True, False): "x",
    (False, False, True, True): "!",
}
"""First, absent, inner, terminated, truncated and interrupted rows, by is_first, terminated, truncated, interrupted."""


@pytest.fixture
def without_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "next_delay_s", lambda backoff: 0.0)


def hunt(*games: list[str], num_envs: int = NUM_AGENTS, **arguments: Any) -> Any:
    """Makes environments that play the games one after the other: each reset takes the next game."""
    return make_vector_env(
        HUNT, num_envs, env_kwargs={"games": iter(games)} | arguments.pop("env_kwargs", {}), **arguments
    )


def word(rows: StepRows) -> str:
    interrupted = rows.interrupted if rows.interrupted.size else np.zeros_like(rows.is_first)
    flags = np.stack([rows.is_first, rows.terminated, rows.truncated, interrupted], axis=1)
    return "".join(LETTERS[tuple(row)] for row in flags.tolist())


def play(env: Any, num_steps: int) -> list[StepRows]:
    return [env.reset(), *(env.step([np.arange(env.num_envs) % NUM_ACTIONS]) for _ in range(num_steps))]


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        (["ppp", "ppp", "ttt"], ["FFF", "iii", "ttt", "FFF"]),
        (["ppp", "ptp", "p.x", "t.."], ["FFF", "iti", "i.x", "t..", "FFF"]),
        (["p..", "pp.", "tpp", ".tp", "..x"], ["F..", "iF.", "tiF", ".ti", "..x", "FFF"]),
        (["ppp", "p.p", "TtX"], ["FFF", "i!i", "t.!", "FFF"]),
        (["ppp", "tpp", "ppp", "pxt"], ["FFF", "tii", ".ii", ".xt", "FFF"]),
    ],
    ids=["all end at once", "one by one", "some come later", "without a last word", "named after its end"],
)
def test_an_agent_is_absent_from_its_end_to_the_reset(game: list[str], expected: list[str]) -> None:
    env = hunt(game)
    assert list(map(word, play(env, len(expected) - 1))) == expected


def test_absent_rows_hold_nothing_and_count_for_nothing() -> None:
    rows = play(hunt(["ppp", "ptp", "p.x", "t.."]), 4)
    assert [row.episodes for row in rows] == [[], [(1, 1.0, 1)], [(2, 3.0, 2)], [(0, 6.0, 3)], []]
    assert [row.rewards.tolist() for row in rows] == [[0, 0, 0], [1, 1, 1], [2, 0, 2], [3, 0, 0], [0, 0, 0]]
    assert rows[2].observation[0].tolist() == [[0, 2], [0, 0], [2, 2]]
    assert rows[3].observation[0].tolist() == [[0, 3], [0, 0], [0, 0]]
    assert not any(row.failures for row in rows)


def test_the_reward_of_an_end_without_an_observation_is_kept_where_it_is_final() -> None:
    _, last = play(hunt(["ppp", "TXp"]), 1)
    assert (word(last), last.rewards.tolist()) == ("t!i", [1, 0, 1])
    assert last.episodes == [(0, 1.0, 1)]


def test_actions_reach_those_who_play() -> None:
    made: list[Hunt] = []

    class Kept(JointEnv):
        def __init__(self, env: Any) -> None:
            made.append(env)
            super().__init__(env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kubebeast_envserver.envs.agents.joint_ids.JointEnv", Kept)
        play(hunt(["ppp", "ptp", "p.x", "t.."]), 4)
    everybody = {"hunter_0": 0, "hunter_1": 1, "hunter_2": 2}
    assert made[0].taken == [everybody, {"hunter_0": 0, "hunter_2": 2}, {"hunter_0": 0}]


@pytest.mark.usefixtures("without_back_off")
@pytest.mark.parametrize("fault", ["!pp", "opp", "npp"])
def test_a_failure_interrupts_all_agents_of_its_environment_and_no_others(fault: str) -> None:
    status = StreamStatus()
    games = ["ppp", "ppt", fault], ["ppp"] * 9
    env = hunt(*games, num_envs=2 * NUM_AGENTS, status=status)
    first, second, third, fourth = play(env, 3)
    assert list(map(word, (first, second, third, fourth))) == ["FFFFFF", "iitiii", "!!.iii", "FFFiii"]
    assert [env for env, _ in third.failures] == [0, 1, 2] and not fourth.failures
    kinds = {"!pp": "exception", "opp": "observation", "npp": "reward"}
    assert getattr(status, f"failures_{kinds[fault]}") == status.env_restarts == 1
    assert not third.observation[0][:NUM_AGENTS].any()


@pytest.mark.usefixtures("without_back_off")
def test_agents_of_a_broken_environment_are_absent_until_it_is_back() -> None:
    env = hunt(["ppp", "!.."], ["!.."], ["!.."], num_envs=NUM_AGENTS)
    assert list(map(word, play(env, 4))) == ["FFF", "!!!", "...", "...", "FFF"]


@pytest.mark.usefixtures("without_back_off")
def test_an_environment_that_keeps_failing_is_given_up() -> None:
    env = hunt(*[["!.."]] * 3, policy=FaultPolicy(max_failures=2))
    assert word(env.reset()) == "..."
    with pytest.raises(AllQuarantined, match="the forest is on fire"):
        play(env, 2)


def test_nobody_in_a_reset_is_a_failure() -> None:
    assert hunt(["..."]).reset().failures[0][1] == "reset: no agent plays after reset: its `agents` is empty"


def test_somebody_who_is_not_possible_is_a_failure() -> None:
    rows = hunt(env_kwargs={"stranger": True}).reset()
    assert rows.failures[0][1] == "reset: agent 'stranger' plays but is not in its possible_agents"


@pytest.mark.usefixtures("without_back_off")
def test_an_environment_that_comes_back_with_other_agents_stays_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    env = hunt(["ppp", "!.."])
    env.reset()
    init = Hunt.__init__
    monkeypatch.setattr(Hunt, "__init__", lambda self, games: init(self, games, num_agents=4))
    interrupted, absent = (env.step([np.zeros(NUM_AGENTS, np.int64)]) for _ in range(2))
    assert (word(interrupted), word(absent)) == ("!!!", "...")
    assert absent.failures[0][1] == "its possible_agents differ from those of the first environment"


def test_the_mask_of_an_agent_that_plays_must_allow_an_action_and_of_others_is_free() -> None:
    rows = play(hunt(["ppp", "ptp", "p.x", "t.."], env_kwargs={"masked": True}), 2)
    mask = rows[2].observation[0]
    assert mask.dtype == np.bool_ and mask.tolist() == [[0, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]]


def test_seeds_count_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int | None] = []
    reset = Hunt.reset

    def note(hunt: Hunt, seed: int | None = None, options: Any = None) -> Any:
        seeds.append(seed)
        return reset(hunt)

    monkeypatch.setattr(Hunt, "reset", note)
    hunt(num_envs=2 * NUM_AGENTS, seed=5).reset()
    assert seeds == [5, 5 + NUM_AGENTS]


def test_rows_must_be_whole_environments() -> None:
    assert num_agents_of(HUNT) == NUM_AGENTS and num_agents_of("CartPole-v1") == 1
    with pytest.raises(
        ValueError, match=r"num_envs = 4: .* multiple of the 3 agents of .*hunter_0, hunter_1, hunter_2"
    ):
        hunt(num_envs=4)


def test_agents_with_other_spaces_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedSpaceError, match=r"action space of 'hunter_1' is Discrete\(5\).*Discrete\(4\)"):
        hunt(env_kwargs={"odd_spaces": {"hunter_1": spaces.Discrete(5)}})


class AllAlike(BaseParallelWrapper[str, Any, int]):
    """Every agent has the spaces of the first."""

    def action_space(self, agent: str) -> spaces.Space[Any]:
        space: spaces.Space[Any] = self.env.action_space("hunter_0")
        return space


def test_wrappers_are_those_of_pettingzoo() -> None:
    odd = {"odd_spaces": {"hunter_1": spaces.Discrete(5)}}
    env = hunt(env_kwargs=odd, wrappers=[Wrapper(f"{__name__}:AllAlike")])
    assert word(env.reset()) == "FFF"
    with pytest.raises(
        ValueError, match=r"wrappers = 'builtins:id': returned \d+, which is no pettingzoo\.ParallelEnv"
    ):
        hunt(wrappers=[Wrapper("builtins:id")])


class Lonely(ParallelEnv[str, Any, int]):
    """Has no possible_agents."""


@pytest.mark.parametrize(
    ("env", "error", "says"),
    [
        ("pettingzoo/no.such.module", ValueError, "there is no module no"),
        ("tests.integration.hunt:pettingzoo/Nobody", ValueError, "hunt.py has no Nobody"),
        ("pettingzoo/butterfly/nowhere_v1", ValueError, "butterfly/nowhere"),
        ("builtins:pettingzoo/dict", ValueError, "builtins.dict is no class of a pettingzoo.ParallelEnv"),
        ("os:pettingzoo/abort", ValueError, "a function is called parallel_env or env, and its id is pettingzoo/os"),
        (f"{__name__}:pettingzoo/Lonely", ValueError, "no possible_agents"),
    ],
)
def test_what_makes_no_agents_is_refused(env: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make_vector_env(env, NUM_AGENTS)


def test_wrong_arguments_are_the_environments_own_error() -> None:
    with pytest.raises(EnvironmentFailure, match="unexpected keyword argument 'nobody'"):
        make_vector_env(HUNT, NUM_AGENTS, env_kwargs={"nobody": 1})


def test_a_time_limit_is_refused_with_the_way_to_one() -> None:
    with pytest.raises(ValueError, match="time_limit = 5: PettingZoo has none; see env_kwargs"):
        resolve_config(HUNT, time_limit=5)


def test_agents_of_an_environment_share_a_picture() -> None:
    env = make_rendered_env(HUNT, 2 * NUM_AGENTS, seed=1)
    env.reset()
    assert env.render().shape == (2 * NUM_AGENTS, 4, 6, 3) and env.render_fps == 5
    assert find_action_meanings(HUNT) is None


def test_agents_of_a_game_of_pettingzoo_die_one_by_one() -> None:
    game = "pettingzoo/butterfly/knights_archers_zombies_v11"
    env_kwargs = {"line_death": True, "max_cycles": 30}
    assert num_agents_of(game, env_kwargs) == 4
    env = make_vector_env(game, 4, env_kwargs=env_kwargs, seed=1)
    rows = [env.reset(), *(env.step([np.array([0, 0, 2, 3])]) for _ in range(31))]
    words = list(map(word, rows))
    death = words.index("ttii")  # archers walk on to the end of the world, knights turn on the spot
    assert words == ["FFFF", *["iiii"] * (death - 1), "ttii", *["..ii"] * (29 - death), "..xx", "FFFF"]
    assert [episode for row in rows for episode in row.episodes] == [
        (0, 0.0, death),
        (1, 0.0, death),
        (2, 0.0, 30),
        (3, 0.0, 30),
    ]
