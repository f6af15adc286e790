"""Evaluation plays whole episodes, counts them unclipped and states its settings."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from kubebeast_envserver.envs import StepRows
from kubebeast_envserver.spaces import Leaf
from kubebeast_learner import checkpoint
from kubebeast_learner.checkpoint import CheckpointStore
from kubebeast_learner.config import ConfigError, EvalConfig, LocalFleetConfig, ModelConfig, TrainConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.evaluate import Evaluation, PlayedEpisode, evaluate, play, print_table, run
from kubebeast_learner.models import Model, make_model

OBSERVATION = Leaf("", "float32", (4,))
ACTION = Leaf("", "int64", (), num_categories=2)
STEP = 1234


def untrained(use_lstm: bool = False) -> Model:
    torch.manual_seed(0)
    return make_model([OBSERVATION], [ACTION], ModelConfig(model="mlp", use_lstm=use_lstm))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """savedir with one run, an untrained CartPole model."""
    model_config = ModelConfig(model="mlp", use_lstm=True)
    config = TrainConfig(model=model_config, fleet=LocalFleetConfig(env="CartPole-v1"))
    state = {
        "format": checkpoint.FORMAT,
        "step": STEP,
        "env_spec": EnvSpec.of("CartPole-v1", [OBSERVATION], [ACTION]).to_plain(),
        "config": as_settings(config),
        "learner": {"model": untrained(use_lstm=True).state_dict()},
    }
    CheckpointStore(tmp_path / "cartpole", keep=1).save(state)
    return tmp_path


class CountdownEnv:
    """Environment i plays one episode of `lengths[i]` decisions, reward 2.5 each, then others of one decision.

    Keeps the actions it was given.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.spec_observation = [OBSERVATION]
        self.spec_action = [ACTION]
        self.num_envs = len(lengths)
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


def test_greedy_takes_the_likeliest_action_and_sample_follows_the_policy() -> None:
    model = untrained()
    torch.nn.init.zeros_(model.policy.weight)
    with torch.no_grad():
        model.policy.bias.copy_(torch.tensor([0.0, 1.0]))
    greedy, sampled = CountdownEnv([200] * 32), CountdownEnv([200] * 32)
    play(greedy, model, "greedy", torch.Generator(), 200)
    play(sampled, model, "sample", torch.Generator().manual_seed(1), 200)
    assert np.mean(greedy.actions) == 1.0
    assert np.mean(sampled.actions) == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.02)


def test_actions_have_the_dtype_of_their_leaf() -> None:
    env = CountdownEnv([2])
    env.spec_action = [Leaf("", "int32", (), num_categories=2)]
    play(env, untrained(), "greedy", torch.Generator(), 10)
    assert env.actions[0].dtype == np.int32


def test_a_run_is_found_by_name_and_played_as_trained(run_folder: Path) -> None:
    evaluation = evaluate(EvalConfig(savedir=run_folder, xpid="cartpole", episodes=3))
    assert (evaluation.env, evaluation.preset, evaluation.step) == ("CartPole-v1", "none", STEP)
    assert len(evaluation.episodes) == 3
    assert all(episode.episode_return == episode.length > 0 for episode in evaluation.episodes)


@pytest.mark.parametrize("mode", ["greedy", "sample"])
def test_the_same_seed_plays_the_same_episodes(run_folder: Path, mode: Any) -> None:
    config = EvalConfig(savedir=run_folder, xpid="cartpole", episodes=3, mode=mode, seed=5)
    assert evaluate(config) == evaluate(config)


def test_a_checkpoint_is_played_by_path(run_folder: Path) -> None:
    path = next((run_folder / "cartpole").glob("*.pt"))
    assert evaluate(EvalConfig(checkpoint=path, episodes=1)).checkpoint == str(path)


def test_json_carries_the_score_and_its_settings(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EvalConfig(savedir=run_folder, xpid="cartpole", episodes=2, json=True)) == 0
    result = json.loads(capsys.readouterr().out)
    returns = [episode["episode_return"] for episode in result["episodes"]]
    assert result["mean_return"] == np.mean(returns) and result["std_return"] == np.std(returns)
    assert (result["mode"], result["seed"], result["step"]) == ("greedy", 1, STEP)


def test_table_states_the_settings_beside_the_score() -> None:
    evaluation = Evaluation(
        env="PongNoFrameskip-v4",
        preset="atari-v4",
        repeat_action_probability=0.25,
        noop_max=30,
        frameskip=4,
        mode="sample",
        seed=9,
        checkpoint="pong.pt",
        step=6_000_000,
        episodes=[PlayedEpisode(20.0, 1700), PlayedEpisode(10.0, 5000, cut_off=True)],
    )
    console = Console(record=True, width=100, file=io.StringIO())
    print_table(evaluation, console)
    text = console.export_text()
    shown = ["15.00 ± 5.00", "5,000 (cut off)", "6,000,000", "atari-v4", "sticky actions 0.25", "no-ops up to 30"]
    shown += ["frame skip 4", "actions sample", "seed 9", "pong.pt"]
    assert [part for part in shown if part not in text] == []


def test_another_environment_is_refused_with_the_difference(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"env = 'Acrobot-v1'.*another environment.*\[4\] against float32 \[6\]"):
        evaluate(EvalConfig(savedir=run_folder, xpid="cartpole", env="Acrobot-v1"))


def test_an_unknown_environment_is_refused(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match="NoSuchGame"):
        evaluate(EvalConfig(savedir=run_folder, xpid="cartpole", env="NoSuchGame-v0"))


@pytest.mark.parametrize("config", [EvalConfig(xpid="gone"), EvalConfig(checkpoint=Path("gone.pt"))])
def test_a_missing_checkpoint_is_named(config: EvalConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="gone"):
        evaluate(config)


def test_a_damaged_checkpoint_is_an_error_not_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "damaged.pt").write_bytes(b"damaged")
    assert run(EvalConfig(checkpoint=tmp_path / "damaged.pt")) == 1
    assert "damaged.pt cannot be read" in capsys.readouterr().err
