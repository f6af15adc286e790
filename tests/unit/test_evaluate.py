"""Evaluation plays whole episodes, counts them unclipped and states its settings."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from kubebeast_learner.checkpoint import CheckpointError
from kubebeast_learner.config import ConfigError, EvalConfig, ModelConfig
from kubebeast_learner.evaluate import Evaluation, evaluate, print_table, run
from kubebeast_learner.playing import PlayedEpisode
from tests.unit.playing import STEP, write_run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """savedir with one run, an untrained CartPole model."""
    write_run(tmp_path / "cartpole", "CartPole-v1", ModelConfig(model="mlp", use_lstm=True))
    return tmp_path


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


def test_weights_alone_are_enough_to_play(run_folder: Path) -> None:
    from_run = evaluate(EvalConfig(savedir=run_folder, xpid="cartpole", episodes=2))
    weights = run_folder / "cartpole" / "weights.safetensors"
    from_weights = evaluate(EvalConfig(checkpoint=weights, episodes=2))
    assert from_weights.checkpoint == str(weights)
    assert (from_weights.env, from_weights.step, from_weights.episodes) == (from_run.env, STEP, from_run.episodes)


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


def test_weights_of_another_model_are_refused(run_folder: Path) -> None:
    path = next((run_folder / "cartpole").glob("*.pt"))
    state = torch.load(path, weights_only=True)
    state["config"]["use_lstm"] = False
    torch.save(state, path)
    with pytest.raises(CheckpointError, match=r"\.pt does not fit its model: .*lstm"):
        evaluate(EvalConfig(checkpoint=path))
