"""`kubebeast train` with the file of `kubebeast tune` runs the requested training."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from kubebeast_common.cli.parsing import StartLog, parse
from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import TrainConfig, TuneConfig
from kubebeast_learner.config.sources import layer_flags
from kubebeast_learner.tune.choice import Choice, expect
from kubebeast_learner.tune.settings_file import chosen_settings, render
from tests.unit.learner.tune.measured import learner, machine

ConfigT = TypeVar("ConfigT")

CHOICE = Choice(device="cpu", precision="fp32", learner_threads=2, num_servers=3, num_actors=24)
CHOSEN = {"num_servers", "num_actors", "learner_threads", "precision", "device", "max_inference_rows"}


def parsed(config_type: type[ConfigT], words: Sequence[str]) -> ConfigT:
    layered = layer_flags(config_type, words, {})
    config: ConfigT = parse(StartLog("test", "text"), "test", config_type, layered, True)
    return config


def written(words: Sequence[str], path: Path) -> TuneConfig:
    config = parsed(TuneConfig, words)
    pieces = machine(4, 100, [learner(5.0, threads=2)])
    settings = chosen_settings(expect(CHOICE, pieces), pieces, config)
    path.write_text(render(settings, config, "Two lines\nof heading."), encoding="utf-8")
    return config


@pytest.mark.parametrize(
    "words",
    [
        ["--env=CartPole-v1"],
        ["--env=PongNoFrameskip-v4", "--model=deep", "--use-lstm", "--preset=atari-v5", "--xpid=007"],
        ["--env=Pendulum-v1", "--recipe=none", "--hidden-sizes", "8", "4", "--epsilon=1e-7"],
        ["--env=Mock", '--env-kwargs={"observation_shape": [4], "seed": "on"}', "--compile=off", "--no-task-input"],
        ["--env=Taxi-v3", "--wrappers=kubebeast_envserver:ActionMaskFromInfo", "--total-steps=77"],
    ],
)
def test_train_gets_what_tune_was_asked_for_and_what_it_chose(words: list[str], tmp_path: Path) -> None:
    asked = as_settings(written(words, tmp_path / "tuned.yaml"))
    trained = as_settings(parsed(TrainConfig, [f"--config={tmp_path / 'tuned.yaml'}"]))

    assert {name: value for name, value in trained.items() if name not in CHOSEN} == {
        name: asked[name] for name in trained if name not in CHOSEN
    }
    assert [trained[name] for name in ("num_servers", "num_actors", "learner_threads")] == [3, 24, 2]
    assert (trained["device"], trained["precision"], trained["max_inference_rows"]) == ("cpu", "fp32", 256)


def test_every_chosen_setting_has_its_reason_above_it(tmp_path: Path) -> None:
    written(["--env=CartPole-v1"], tmp_path / "tuned.yaml")
    lines = (tmp_path / "tuned.yaml").read_text(encoding="utf-8").splitlines()

    assert lines[:2] == ["# Two lines", "# of heading."]
    for name in CHOSEN:
        (place,) = (index for index, text in enumerate(lines) if text.startswith(f"{name}:"))
        assert lines[place - 1].startswith("# ") and len(lines[place - 1]) > 10


def test_what_the_recipe_says_anyway_is_not_repeated(tmp_path: Path) -> None:
    written(["--env=PongNoFrameskip-v4"], tmp_path / "tuned.yaml")

    assert "learning_rate" not in (tmp_path / "tuned.yaml").read_text(encoding="utf-8")
