"""Evaluation plays whole episodes, counts them unclipped and states its settings."""

import io
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from rich.console import Console

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.config import ActorProcessesConfig, ConfigError, EvalConfig, ModelConfig, MonoConfig
from kubebeast_learner.play.evaluate import Evaluation, evaluate, print_table, run
from kubebeast_learner.play.playing import PlayedEpisode
from kubebeast_learner.run.checkpoint import CheckpointError
from tests.unit.learner.play.playing import STEP, write_checkpoint, write_run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A savedir with one run, an untrained CartPole model."""
    write_run(tmp_path / "cartpole", "CartPole-v1", ModelConfig(model="mlp", use_lstm=True))
    return tmp_path


def test_a_run_is_found_by_name_and_played_as_trained(run_folder: Path) -> None:
    evaluation = evaluate(EvalConfig(savedir=str(run_folder), xpid="cartpole", episodes=3))
    assert (evaluation.env, evaluation.preset, evaluation.step) == ("CartPole-v1", "none", STEP)
    assert len(evaluation.episodes) == 3
    assert all(episode.episode_return == episode.length > 0 for episode in evaluation.episodes)


@pytest.mark.parametrize("mode", ["greedy", "sample"])
def test_the_same_seed_plays_the_same_episodes(run_folder: Path, mode: Any) -> None:
    config = EvalConfig(savedir=str(run_folder), xpid="cartpole", episodes=3, mode=mode, seed=5)
    assert evaluate(config) == evaluate(config)


def test_a_game_of_breakout_ends_under_a_policy_that_never_fires(tmp_path: Path) -> None:
    write_run(tmp_path / "breakout", "BreakoutNoFrameskip-v4", ModelConfig(model="shallow"))
    path = next((tmp_path / "breakout").glob("*.pt"))
    state = torch.load(path, weights_only=True)
    state["learner"]["model"]["policy.weight"].zero_()
    state["learner"]["model"]["policy.bias"].copy_(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    torch.save(state, path)
    (episode,) = evaluate(EvalConfig(checkpoint=path, episodes=1, max_episode_steps=1000)).episodes
    assert not episode.cut_off


CARTPOLE = ModelConfig(model="mlp")
FALLS_AFTER = 8
"""No policy falls sooner."""


@pytest.mark.parametrize("weights_alone", [False, True])
def test_the_environment_is_made_as_it_was_in_training(tmp_path: Path, weights_alone: bool) -> None:
    kwargs = {"max_episode_steps": FALLS_AFTER - 1}
    folder = write_run(tmp_path / "short", "CartPole-v1", CARTPOLE, kwargs=kwargs)
    path = folder / "weights.safetensors" if weights_alone else next(folder.glob("*.pt"))
    evaluation = evaluate(EvalConfig(checkpoint=path, episodes=2))
    assert [episode.length for episode in evaluation.episodes] == [FALLS_AFTER - 1] * 2
    assert (evaluation.preset, evaluation.env_kwargs, evaluation.notes) == ("none", kwargs, [])


def test_overrides_of_an_atari_preset_are_those_of_the_training(tmp_path: Path) -> None:
    kwargs = {"frameskip": 8, "max_num_frames_per_episode": 80, "noop_max": 1, "repeat_action_probability": 0.5}
    write_run(tmp_path / "pong", "PongNoFrameskip-v4", ModelConfig(model="shallow"), preset="atari-v5", kwargs=kwargs)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="pong", episodes=1))
    assert evaluation.episodes[0].length <= 10
    assert (evaluation.preset, evaluation.env_kwargs) == ("atari-v5", kwargs)
    assert (evaluation.frameskip, evaluation.noop_max, evaluation.repeat_action_probability) == (8, 1, 0.5)


def test_flags_win_over_the_training_and_the_score_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "short", "CartPole-v1", CARTPOLE, kwargs={"max_episode_steps": 3})
    assert run(EvalConfig(savedir=str(tmp_path), xpid="short", episodes=1, env_kwargs='{"max_episode_steps": 5}')) == 0
    out = capsys.readouterr().out
    assert 'env_kwargs {"max_episode_steps": 5}' in out
    assert 'trained on CartPole-v1 with preset none, kwargs {"max_episode_steps": 3}' in out
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="short", episodes=1, env_kwargs="{}"))
    assert evaluation.episodes[0].length >= FALLS_AFTER


def test_another_environment_is_made_as_its_own_id_says(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"preset": "atari-v4", "kwargs": {"max_num_frames_per_episode": 80}}
    write_run(tmp_path / "pong", "PongNoFrameskip-v4", ModelConfig(model="shallow"), **settings)
    evaluation = evaluate(
        EvalConfig(savedir=str(tmp_path), xpid="pong", episodes=1, env="ALE/Pong-v5", max_episode_steps=30)
    )
    assert (evaluation.preset, evaluation.env_kwargs, evaluation.frameskip) == ("atari-v5", {}, 4)
    assert evaluation.episodes[0].cut_off
    trained_on = 'PongNoFrameskip-v4 with preset atari-v4, kwargs {"max_num_frames_per_episode": 80}'
    assert evaluation.notes == [f"trained on {trained_on}"]


def test_what_an_old_env_server_did_not_tell_is_assumed_aloud(tmp_path: Path) -> None:
    hosted = make_vector_env("CartPole-v1", 1)
    write_checkpoint(tmp_path / "old", "CartPole-v1", hosted.spec_observation, hosted.spec_action, CARTPOLE)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="old", episodes=1))
    assert evaluation.notes == ["the run does not record the settings of its environment; assumed: preset none"]


def test_a_preset_of_a_newer_env_server_is_refused_by_its_name(tmp_path: Path) -> None:
    hosted = make_vector_env("CartPole-v1", 1)
    leaves, told = (hosted.spec_observation, hosted.spec_action), EnvConfig(preset="atari-v9")
    write_checkpoint(tmp_path / "new", "CartPole-v1", *leaves, CARTPOLE, env_config=told)
    with pytest.raises(ConfigError, match="preset = 'atari-v9': must be one of"):
        evaluate(EvalConfig(savedir=str(tmp_path), xpid="new"))
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="new", preset="none", episodes=1))
    assert evaluation.notes == ["trained on CartPole-v1 with preset atari-v9"]


def test_settings_tell_how_older_runs_of_one_machine_made_their_environment(tmp_path: Path) -> None:
    hosted = make_vector_env("PongNoFrameskip-v4", 1)
    settings = MonoConfig(actors=ActorProcessesConfig(preset="atari-v5"))
    leaves = hosted.spec_observation, hosted.spec_action
    write_checkpoint(tmp_path / "old", "PongNoFrameskip-v4", *leaves, ModelConfig(model="shallow"), settings=settings)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="old", episodes=1, max_episode_steps=3))
    assert (evaluation.preset, evaluation.notes) == ("atari-v5", [])


@pytest.mark.parametrize("text", ["size=5", "[]", '"{}"'])
def test_arguments_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="env_kwargs"):
        EvalConfig(env_kwargs=text)


def test_a_checkpoint_is_played_by_path(run_folder: Path) -> None:
    path = next((run_folder / "cartpole").glob("*.pt"))
    assert evaluate(EvalConfig(checkpoint=path, episodes=1)).checkpoint == str(path)


def test_weights_alone_are_enough_to_play(run_folder: Path) -> None:
    from_run = evaluate(EvalConfig(savedir=str(run_folder), xpid="cartpole", episodes=2))
    weights = run_folder / "cartpole" / "weights.safetensors"
    from_weights = evaluate(EvalConfig(checkpoint=weights, episodes=2))
    assert from_weights.checkpoint == str(weights)
    assert (from_weights.env, from_weights.step, from_weights.episodes) == (from_run.env, STEP, from_run.episodes)


def test_json_carries_the_score_and_its_settings(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EvalConfig(savedir=str(run_folder), xpid="cartpole", episodes=2, json=True)) == 0
    result = json.loads(capsys.readouterr().out)
    returns = [episode["episode_return"] for episode in result["episodes"]]
    assert result["mean_return"] == np.mean(returns) and result["std_return"] == np.std(returns)
    assert (result["mode"], result["seed"], result["step"]) == ("greedy", 1, STEP)


@pytest.mark.parametrize("write", [lambda self: print("bye"), lambda self: os.write(1, b"bye")], ids=["python", "C"])
def test_json_is_all_of_the_output_whatever_an_environment_prints(
    run_folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, write: Callable[[Any], None]
) -> None:
    monkeypatch.setattr(CartPoleEnv, "close", write)
    assert run(EvalConfig(savedir=str(run_folder), xpid="cartpole", episodes=1, json=True)) == 0
    captured = capfd.readouterr()
    assert len(json.loads(captured.out)["episodes"]) == 1
    assert "bye" in captured.err


EVALUATION = Evaluation(
    env="PongNoFrameskip-v4",
    preset="atari-v4",
    env_kwargs={"difficulty": [2]},
    wrappers=["a:B", {"c:D": {"x": 1}}],
    time_limit=900,
    notes=["trained on ALE/Pong-v5 with preset atari-v5"],
    repeat_action_probability=0.25,
    noop_max=30,
    frameskip=4,
    mode="sample",
    seed=9,
    checkpoint="pong.pt",
    step=6_000_000,
    episodes=[PlayedEpisode(20.0, 1700), PlayedEpisode(10.0, 5000, cut_off=True)],
)


def test_table_states_the_settings_beside_the_score() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    print_table(EVALUATION, console)
    text = console.export_text()
    shown = ["15.00 ± 5.00", "5,000 (cut off)", "6,000,000", "atari-v4", "sticky actions 0.25", "no-ops up to 30"]
    shown += ["frame skip 4", "actions sample", "seed 9", "pong.pt", 'env_kwargs {"difficulty": [2]}']
    shown += ["trained on ALE/Pong-v5 with preset atari-v5", 'wrappers ["a:B", {"c:D": {"x": 1}}], time limit 900']
    assert [part for part in shown if part not in text] == []


def test_the_table_has_a_column_for_each_number_of_the_infos() -> None:
    episodes = [PlayedEpisode(2.0, 10, info=(1.0, math.nan)), PlayedEpisode(4.0, 12, info=(0.0, 7.5))]
    evaluation = replace(EVALUATION, log_info=("success", "time"), episodes=[*episodes, PlayedEpisode(6.0, 1)])
    console = Console(record=True, width=100, file=io.StringIO())
    print_table(evaluation, console)
    text = console.export_text()
    assert evaluation.mean_info == {"success": 0.5, "time": 7.5}
    assert all(part in text for part in ("info/success", "info/time", "0.5", "7.5", "-"))


def test_another_environment_is_refused_with_the_difference(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"env = 'Acrobot-v1'.*another environment.*\[4\] against float32 \[6\]"):
        evaluate(EvalConfig(savedir=str(run_folder), xpid="cartpole", env="Acrobot-v1"))


def test_an_unknown_environment_is_refused(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match="NoSuchGame"):
        evaluate(EvalConfig(savedir=str(run_folder), xpid="cartpole", env="NoSuchGame-v0"))


@pytest.mark.parametrize("config", [EvalConfig(xpid="gone"), EvalConfig(checkpoint=Path("gone.pt"))])
def test_a_missing_checkpoint_is_named(config: EvalConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="gone"):
        evaluate(config)


def test_a_damaged_checkpoint_is_an_error_not_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "damaged.pt").write_bytes(b"damaged")
    assert run(EvalConfig(checkpoint=tmp_path / "damaged.pt")) == 1
    assert "damaged.pt cannot be read" in capsys.readouterr().err


def test_a_checkpoint_without_counts_of_what_its_statistics_left_out_is_played(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "older", "CartPole-v1", ModelConfig(model="mlp", normalise_observations=True))
    path = next(folder.glob("*.pt"))
    state = torch.load(path, weights_only=True)
    del state["learner"]["model"]["normaliser.leaves.0.left_out"]
    torch.save(state, path)
    assert len(evaluate(EvalConfig(checkpoint=path, episodes=1)).episodes) == 1


def test_weights_of_another_model_are_refused(run_folder: Path) -> None:
    path = next((run_folder / "cartpole").glob("*.pt"))
    state = torch.load(path, weights_only=True)
    state["config"]["use_lstm"] = False
    torch.save(state, path)
    with pytest.raises(CheckpointError, match=r"\.pt does not fit its model: .*lstm"):
        evaluate(EvalConfig(checkpoint=path))
