"""`kubebeast check-env` adds the model to the trial of an environment."""

import json

import pytest

from kubebeast_common.cli.main import main
from kubebeast_learner.config import CheckEnvConfig, ConfigError, ModelConfig
from kubebeast_learner.play.check_env import check_env, run
from kubebeast_learner.training import sizes


def test_the_trial_and_the_model_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-env", "CartPole-v1", "--steps", "30", "--time-limit", "3", "--hidden-sizes", "8"]) == 0
    out = capsys.readouterr().out
    shown = ["CartPole-v1 with preset none, time limit 3", "observation  float32  [4]", "30 random steps"]
    shown += ["10 episodes of 3 to 3 steps", "model: ", " parameters", "no violations"]
    assert [part for part in shown if part not in out] == []


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CheckEnvConfig(env="CartPole-v1", steps=20, json=True)) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["env"], told["steps"], told["violations"]) == ("CartPole-v1", 20, [])
    assert told["num_parameters"] > 100 and told["bytes_per_step"] > 16 and told["preset"] == "none"


def test_frames_get_a_network_of_images() -> None:
    assert check_env(CheckEnvConfig(env="Mock", steps=5))[2].endswith("as an image of 84x84 with 4 channels")


def test_an_environment_without_a_model_is_a_violation() -> None:
    config = CheckEnvConfig(env="CartPole-v1", steps=5, model=ModelConfig(model="deep"))
    (violation,) = check_env(config)[1].violations
    assert violation.text.startswith("no model: --model deep takes an image")


def test_a_model_that_no_training_has_room_for_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "memory_bytes", lambda: 1 << 30)
    config = CheckEnvConfig(env="CartPole-v1", steps=5, model=ModelConfig(model="mlp", hidden_sizes=(9000, 9000)))
    (violation,) = check_env(config)[1].violations
    assert violation.text.startswith("no model: CartPole-v1 takes a model of 0.3")
    assert violation.text.endswith("this machine has 1 GiB")


def test_settings_that_make_no_environment_are_refused() -> None:
    with pytest.raises(ConfigError, match="env = 'NoSuchGame-v0'"):
        check_env(CheckEnvConfig(env="NoSuchGame-v0"))
