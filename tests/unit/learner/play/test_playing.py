"""A model plays one whole episode in every environment, with its memory carried from step to step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.envs.factory import EnvironmentFailure, StepRows
from kubebeast_envserver.rows.rows import WithoutOptions
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, ModelInputs, make_model
from kubebeast_learner.play.playing import PlayedEpisode, play

OBSERVATION = Leaf("", "float32", (4,))
ACTION = Leaf("", "int64", (), num_categories=2)


def untrained(use_lstm: bool = False, action: Leaf = ACTION) -> Model:
    torch.manual_seed(0)
    config = ModelConfig(model="mlp", use_lstm=use_lstm, last_action_input="on", reward_input="on")
    return make_model([OBSERVATION], [action], config)


class CountdownEnv(WithoutOptions):
    """Environment i plays one episode of `lengths[i]` decisions, reward 2.5 each, then others of one decision.

    Records its actions.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.spec_observation = [OBSERVATION]
        self.spec_action = [ACTION]
        self.num_envs, self.num_agents = len(lengths), 1
        self.takes_turns = False
        self.actions: list[Any] = []
        self._lengths = np.array(lengths)
        self._left = self._lengths.copy()
        self._final = np.zeros(self.num_envs, np.bool_)

    def reset(self) -> StepRows:
        return self._rows(np.ones(self.num_envs, np.bool_), [])

    def step(self, actions: list[Any]) -> StepRows:
        self.actions.append(actions[0])
        is_first = self._final
        self._left = np.where(is_first, 1, self._left - 1)
        self._final = (self._left == 0) & ~is_first
        ended = np.flatnonzero(self._final)
        episodes = [(int(i), 2.5 * float(self._lengths[i]), int(self._lengths[i])) for i in ended]
        self._lengths[ended] = 1
        return self._rows(is_first, episodes)

    def close(self) -> None:
        pass

    def _rows(self, is_first: Any, episodes: list[tuple[int, float, int]]) -> StepRows:
        return StepRows(
            observation=[np.tile(self._left[:, None].astype(np.float32), (1, 4))],
            rewards=np.where(is_first, 0, 2.5).astype(np.float32),
            terminated=self._final,
            truncated=np.zeros(self.num_envs, np.bool_),
            is_first=is_first,
            episodes=episodes,
        )


def test_every_environment_plays_exactly_one_episode_however_long() -> None:
    played = play(CountdownEnv([1, 7, 3]), untrained(), "greedy", torch.Generator(), max_episode_steps=100)
    assert played == [PlayedEpisode(2.5, 1), PlayedEpisode(17.5, 7), PlayedEpisode(7.5, 3)]


def test_an_endless_episode_is_cut_off_and_marked() -> None:
    played = play(CountdownEnv([2, 1000]), untrained(), "greedy", torch.Generator(), max_episode_steps=5)
    assert played == [PlayedEpisode(5.0, 2), PlayedEpisode(12.5, 5, cut_off=True)]


class FailingEnv(CountdownEnv):
    def step(self, actions: list[Any]) -> StepRows:
        rows = super().step(actions)
        failed = np.array([False, len(self.actions) == 2])
        return replace(rows, interrupted=failed, failures=[(1, "on fire")] if failed.any() else [])


def test_an_environment_that_fails_ends_the_play() -> None:
    env = FailingEnv([5, 5])
    with pytest.raises(EnvironmentFailure, match="environment 1 failed: on fire"):
        play(env, untrained(), "greedy", torch.Generator(), 100)
    assert len(env.actions) == 2


def test_greedy_takes_the_likeliest_action_and_sample_follows_the_policy() -> None:
    model = untrained()
    state = model.state_dict()
    state["policy.weight"].zero_()
    state["policy.bias"].copy_(torch.tensor([0.0, 1.0]))
    greedy, sampled = CountdownEnv([200] * 32), CountdownEnv([200] * 32)
    play(greedy, model, "greedy", torch.Generator(), 200)
    play(sampled, model, "sample", torch.Generator().manual_seed(1), 200)
    assert np.mean(greedy.actions) == 1.0
    assert np.mean(sampled.actions) == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.02)


def test_actions_have_the_dtype_of_their_leaf() -> None:
    env = CountdownEnv([2])
    play(env, untrained(action=Leaf("", "int32", (), num_categories=2)), "greedy", torch.Generator(), 10)
    assert env.actions[0].dtype == np.int32


def test_state_last_action_and_reward_go_from_step_to_step() -> None:
    model = untrained(use_lstm=True)
    calls: list[tuple[ModelInputs, Any]] = []
    results: list[tuple[Any, Any]] = []

    def note(module: Any, arguments: Any, result: Any) -> None:
        calls.append(arguments)
        results.append(result)

    env = CountdownEnv([5, 3])
    with model.register_forward_hook(note):
        play(env, model, "greedy", torch.Generator(), 100)
    assert len(calls) == 5
    for state, expected in zip(calls[0][1], model.initial_state(2), strict=True):
        torch.testing.assert_close(state, expected)
    for (inputs, before), (_, after), actions in zip(calls[1:], results, env.actions, strict=False):
        assert all(one is other for one, other in zip(before, after, strict=True))
        is_first = inputs.is_first[0]
        torch.testing.assert_close(inputs.last_action[0][~is_first], torch.from_numpy(actions)[~is_first])
        torch.testing.assert_close(inputs.reward[0], torch.where(is_first, 0.0, 2.5))
    assert [inputs.is_first[0].tolist() for inputs, _ in calls] == [[True, True], *[[False, False]] * 3, [False, True]]


def test_a_watcher_sees_every_moment_of_the_longest_episode() -> None:
    env = CountdownEnv([2, 4])
    seen: list[int] = []
    play(env, untrained(), "greedy", torch.Generator(), 100, watch=lambda: seen.append(len(env.actions)))
    assert seen == [0, 1, 2, 3, 4]
