"""Wrappers that a checkpoint names are foreign code, which runs only if the user of the checkpoint agrees."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_learner.config import (
    ActorProcessesConfig,
    CheckpointConfig,
    ConfigError,
    EvalConfig,
    ModelConfig,
    MonoConfig,
    RenderConfig,
)
from kubebeast_learner.play.evaluate import Evaluation, evaluate
from kubebeast_learner.play.export_description import describe
from kubebeast_learner.play.render import render
from kubebeast_learner.play.trained_model import load_trained, make_trained
from kubebeast_learner.run.checkpoint_file import load_path
from tests.unit.learner.play.playing import write_run

MODULE = """
import gymnasium
class TenTimes(gymnasium.RewardWrapper):
    def __init__(self, env, plus=0):
        super().__init__(env)
        self.plus = plus
    def reward(self, reward):
        return 10 * reward + self.plus
"""
TEN_TIMES = Wrapper("ten_times:TenTimes", {"plus": 1})
FLAG = '[{"ten_times:TenTimes": {"plus": 1}}]'
LIMIT = 5
"""No policy lets CartPole fall so soon."""


@pytest.fixture(autouse=True)
def ten_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the module ten_times importable, but not imported before the test."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "ten_times.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield
    sys.modules.pop("ten_times", None)


def trained(savedir: Path, wrappers: str | None = None) -> Path:
    """Writes a run with TEN_TIMES and a time limit.

    wrappers: setting of its `mono`; None for a run of a `learner`, to which env-servers sent the wrappers.
    """
    settings = None if wrappers is None else MonoConfig(actors=ActorProcessesConfig(wrappers=wrappers))
    model = ModelConfig(model="mlp")
    folder = write_run(savedir / "run", "CartPole-v1", model, wrappers=[TEN_TIMES], time_limit=LIMIT, settings=settings)
    sys.modules.pop("ten_times", None)
    return folder


def returns(evaluation: Evaluation) -> list[float]:
    return [episode.episode_return for episode in evaluation.episodes]


def test_wrappers_that_an_env_server_told_are_not_imported_without_the_users_word(tmp_path: Path) -> None:
    trained(tmp_path)
    told = f"CartPole-v1 was trained with --wrappers '{FLAG}': add that flag, or --wrappers train"
    with pytest.raises(ConfigError, match=f"wrappers = '': .*run/checkpoint.* records that {re.escape(told)}"):
        evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1))
    assert "ten_times" not in sys.modules


@pytest.mark.parametrize("wrappers", ["train", FLAG])
def test_the_users_word_is_train_or_the_wrappers_themselves(tmp_path: Path, wrappers: str) -> None:
    trained(tmp_path)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=2, wrappers=wrappers))
    assert returns(evaluation) == [11.0 * LIMIT] * 2
    assert (evaluation.wrappers, evaluation.time_limit, evaluation.notes) == ([TEN_TIMES.to_plain()], LIMIT, [])


def test_wrappers_of_ones_own_training_are_played_by_its_name(tmp_path: Path) -> None:
    folder = trained(tmp_path, FLAG)
    assert returns(evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1))) == [11.0 * LIMIT]
    with pytest.raises(ConfigError, match="--wrappers train"):
        evaluate(EvalConfig(checkpoint=folder / "weights.safetensors", episodes=1))


def test_a_run_that_is_named_vouches_for_each_of_its_files(tmp_path: Path) -> None:
    (path,) = trained(tmp_path, FLAG).glob("*.pt")
    assert make_trained(str(path), load_path(path), is_own=True, is_trusted=True).own_wrappers == (TEN_TIMES,)
    assert load_trained(CheckpointConfig(checkpoint=path)).own_wrappers == ()


def test_ones_own_training_vouches_for_its_own_wrappers_alone(tmp_path: Path) -> None:
    trained(tmp_path, "gymnasium.wrappers:FlattenObservation")
    with pytest.raises(ConfigError, match="--wrappers train"):
        evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1))
    assert "ten_times" not in sys.modules


def test_flags_win_over_wrappers_and_time_limit_of_the_training(tmp_path: Path) -> None:
    trained(tmp_path)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1, wrappers="[]", time_limit=3))
    assert (returns(evaluation), evaluation.wrappers, evaluation.time_limit) == ([3.0], [], 3)
    assert evaluation.notes == [f"trained on CartPole-v1 with preset none, wrappers {TEN_TIMES}, time limit {LIMIT}"]


def test_another_environment_has_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("AnotherPole-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1, env="AnotherPole-v0"))
    assert (evaluation.wrappers, evaluation.time_limit) == ([], 0)


@pytest.mark.parametrize("env", ["gymnasium:CartPole-v1", "gymnasium.envs.classic_control:CartPole-v1", "CartPole"])
def test_the_same_environment_by_another_name_has_both(tmp_path: Path, env: str) -> None:
    trained(tmp_path)
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="run", episodes=1, env=env, wrappers="train"))
    assert (evaluation.wrappers, evaluation.time_limit) == ([TEN_TIMES.to_plain()], LIMIT)


def test_a_video_shows_what_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    trained(tmp_path)
    config = RenderConfig(savedir=str(tmp_path), xpid="run", out=tmp_path / "a.gif", wrappers="train")
    assert f"return {11 * LIMIT}" in render(config)


def test_an_export_tells_both_and_runs_no_strangers_code(tmp_path: Path) -> None:
    trained(tmp_path)
    environment = describe(load_trained(EvalConfig(savedir=str(tmp_path), xpid="run")))["environment"]
    assert (environment["wrappers"], environment["time_limit"]) == ([{TEN_TIMES.name: {"plus": 1}}], LIMIT)
    assert "--wrappers train" in environment["notes"][0]
    assert "ten_times" not in sys.modules


@pytest.mark.parametrize("text", ["mine", "[4]"])
def test_what_is_no_list_of_wrappers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="wrappers = "):
        EvalConfig(wrappers=text)
