"""Environments get the wrappers and the time limit of the settings."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubebeast_common.spec.env_config import EnvConfig, Wrapper
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import (
    EnvironmentFailure,
    HostedEnv,
    find_action_meanings,
    make_rendered_env,
    make_vector_env,
    resolve_config,
)

MODULE = """
import gymnasium
class Offset(gymnasium.RewardWrapper):
    def __init__(self, env, by=1.0):
        super().__init__(env)
        self.by = by
    def reward(self, reward):
        return 10 * float(reward) + self.by
class Backwards(gymnasium.ActionWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(2)
    def action(self, action):
        return 1 - action
def raises(env):
    raise OSError("no licence")
def nothing(env):
    return None
number = 5
"""
FLATTEN = Wrapper("gymnasium.wrappers:FlattenObservation")
PONG = "PongNoFrameskip-v4"


@pytest.fixture(autouse=True)
def my_wrappers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the module my_wrappers importable."""
    (tmp_path / "my_wrappers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_wrappers", None)


def episode_lengths(env: HostedEnv, num_steps: int) -> set[int]:
    env.reset()
    actions = [np.zeros((env.num_envs, *leaf.shape), leaf.dtype) for leaf in env.spec_action]
    return {length for _ in range(num_steps) for _, _, length in env.step(actions).episodes}


def test_wrappers_are_applied_in_order_with_their_arguments() -> None:
    wrappers = [Wrapper("my_wrappers:Offset"), Wrapper("my_wrappers:Offset", {"by": 3.0}), FLATTEN]
    env = make_vector_env("FrozenLake-v1", 2, seed=1, wrappers=wrappers)
    assert env.spec_observation == [Leaf("", "int64", (16,))]
    env.reset()
    # FrozenLake pays 0 for a move: (0 * 10 + 1) * 10 + 3.
    assert env.step([np.zeros(2, np.int64)]).rewards.tolist() == [13.0, 13.0]


def test_an_environment_that_is_made_again_is_wrapped_again() -> None:
    wrappers = [Wrapper("my_wrappers:Offset", {"by": 100.0})]
    env = make_vector_env("tests.integration.envserver_faults:RaisesInStep-v0", 1, wrappers=wrappers)
    env.reset()
    assert env.step([np.zeros(1, np.int64)]).failures[0][1].startswith("step raised RuntimeError: the emulator")


def test_a_time_limit_truncates_in_place_of_the_registered_one() -> None:
    env = make_vector_env("Pendulum-v1", 2, seed=1, time_limit=7)
    assert episode_lengths(env, 30) == {7}
    assert episode_lengths(make_vector_env("Pendulum-v1", 1, seed=1, time_limit=230), 240) == {230}


def test_a_time_limit_of_an_atari_game_counts_decisions() -> None:
    env = make_vector_env(PONG, 2, env_kwargs={"frameskip": 3}, seed=1, evaluation=True, time_limit=20)
    assert episode_lengths(env, 50) == {20}


def test_a_rendered_environment_is_wrapped_and_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = make_rendered_env("CartPole-v1", 1, seed=1, wrappers=[Wrapper("my_wrappers:Offset")], time_limit=4)
    assert episode_lengths(env, 10) == {4}
    assert env.step([np.zeros(1, np.int64)]).rewards.tolist() == [11.0]
    assert env.render().shape[3] == 3


def test_how_an_environment_is_made_is_told_in_full() -> None:
    told = EnvConfig(preset="none", kwargs={"x": 1}, wrappers=(FLATTEN,), time_limit=5)
    assert resolve_config("CartPole-v1", "auto", {"x": 1}, [FLATTEN], 5) == told
    assert resolve_config(PONG, "none", {}, [FLATTEN]) == EnvConfig(preset="none", wrappers=(FLATTEN,))


def test_action_names_are_not_those_of_actions_that_a_wrapper_has_replaced() -> None:
    assert find_action_meanings(PONG, "none", {}, [Wrapper("my_wrappers:Offset")]) is not None
    assert find_action_meanings(PONG, "none", {}, [Wrapper("my_wrappers:Backwards")]) is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"wrappers": [Wrapper("nowhere:B")]}, ValueError, "wrappers = 'nowhere:B': there is no module nowhere"),
        ({"wrappers": [Wrapper("my_wrappers:B")]}, ValueError, "wrappers = 'my_wrappers:B': .*my_wrappers.py has no B"),
        ({"wrappers": [Wrapper("time:B")]}, ValueError, "wrappers = 'time:B': time has no B"),
        ({"wrappers": [Wrapper("my_wrappers:number")]}, ValueError, "wrappers = .*: is 5, not something that takes"),
        ({"wrappers": [Wrapper("my_wrappers:nothing")]}, ValueError, "returned None, which is no gymnasium.Env"),
        (
            {"wrappers": [Wrapper("my_wrappers:raises")]},
            EnvironmentFailure,
            r"wrappers = 'my_wrappers:raises' raised OSError: no licence \(my_wrappers.py, line 16\)",
        ),
        (
            {"wrappers": [Wrapper("my_wrappers:Offset", {"to": 1})]},
            EnvironmentFailure,
            """wrappers = 'my_wrappers:Offset {"to": 1}' raised TypeError: .*unexpected keyword argument 'to'""",
        ),
        ({"env": "Mock", "wrappers": [FLATTEN]}, ValueError, "wrappers = .*FlattenObservation': .* Mock is a whole"),
        ({"env": PONG, "wrappers": [FLATTEN]}, ValueError, "wrappers = .*: .* the preset atari-v4 .* --preset none"),
        ({"env": "Mock", "time_limit": 5}, ValueError, "time_limit = 5: Mock has none"),
        ({"time_limit": -5}, ValueError, "time_limit = -5: must not be negative"),
        (
            {"time_limit": 5, "env_kwargs": {"max_episode_steps": 6}},
            ValueError,
            "time_limit = 5: env_kwargs set max_episode_steps = 6: choose one",
        ),
    ],
)
def test_what_cannot_wrap_or_limit_is_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_vector_env(**{"env": "CartPole-v1", "num_envs": 1, **arguments})
