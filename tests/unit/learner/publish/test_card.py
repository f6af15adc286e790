"""The model card is valid for the Hub, and says which score it has."""

import re
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results

from tests.hub_server import TOKEN, serve_hub
from tests.unit.learner.play.playing import STEP
from tests.unit.learner.publish.published import ENV, RETURNS, add_score, publish, write_run


def card_of(folder: Path) -> ModelCard:
    return ModelCard((folder / "README.md").read_text())


def data_of(folder: Path) -> Any:
    """Returns the metadata, a ModelCardData, as the Hub's client reads them."""
    return card_of(folder).data


def test_the_score_is_that_of_the_evaluation_of_this_very_checkpoint(tmp_path: Path) -> None:
    run = write_run(tmp_path, returns=RETURNS)
    add_score(run, STEP - 1, 1.0, 1.0)
    add_score(run, STEP, 475.5, 3.25)
    add_score(run, STEP + 1, 2.0, 2.0)
    publish(run, tmp_path / "model")
    data = data_of(tmp_path / "model")
    (result,) = data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == (ENV, "mean_reward", "475.50 +/- 3.25")
    assert result.metric_args == {"episodes": 20, "source": "evaluation"}
    assert (data.library_name, data.pipeline_tag, data.model_name) == ("kubebeast", "reinforcement-learning", "run")
    assert {"reinforcement-learning", ENV} <= set(data.tags)
    assert f"| `{ENV}` | 475.50 ± 3.25 | 20 | `kubebeast eval` of this checkpoint |" in card_of(tmp_path / "model").text


def test_without_an_evaluation_the_score_is_that_of_the_training_and_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path, returns=RETURNS)
    add_score(run, STEP + 1, 475.5, 3.25)
    publish(run, tmp_path / "model")
    (result,) = data_of(tmp_path / "model").eval_results
    assert (result.metric_value, result.metric_args) == ("3.00 +/- 2.16", {"episodes": 3, "source": "training"})
    assert "3.00 ± 2.16 | 3 | newest episodes of the training" in card_of(tmp_path / "model").text


def test_an_evaluation_in_another_environment_is_one_more_result(tmp_path: Path) -> None:
    run = write_run(tmp_path, returns=RETURNS)
    add_score(run, STEP, 475.5, 3.25, env="Acrobot-v1")
    publish(run, tmp_path / "model")
    results = data_of(tmp_path / "model").eval_results
    assert {each.dataset_name: each.metric_args["source"] for each in results} == {
        ENV: "training",
        "Acrobot-v1": "evaluation",
    }


def test_a_model_without_a_score_has_no_result(tmp_path: Path) -> None:
    publish(write_run(tmp_path), tmp_path / "model")
    card = card_of(tmp_path / "model")
    assert data_of(tmp_path / "model").eval_results is None and "has no score" in card.text


def test_a_card_is_valid_for_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path, returns=RETURNS, env="my_envs:Maze|with`odd`[name]-v0")
    publish(run, tmp_path / "model")
    card = card_of(tmp_path / "model")
    name, results = model_index_to_eval_results(data_of(tmp_path / "model").to_dict()["model-index"])
    assert name == "run" and results[0].dataset_name == "my_envs:Maze|with`odd`[name]-v0"
    with serve_hub() as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        card.validate()
        assert hub.asked == ["POST /api/validate-yaml"]
    lines = [line for line in card.text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in lines), "no name breaks a table"


def test_settings_that_differ_from_the_defaults_are_listed_with_them(tmp_path: Path) -> None:
    publish(write_run(tmp_path), tmp_path / "model")
    text = card_of(tmp_path / "model").text
    assert "| `seed` | `7` | `1` | set for this run |" in text
    assert "discounting" not in text and "tracker" not in text and "savedir" not in text


def test_code_that_the_model_needs_is_named_with_its_flag(tmp_path: Path) -> None:
    publish(write_run(tmp_path, env="my_envs:Maze-v0"), tmp_path / "model")
    text = card_of(tmp_path / "model").text
    assert "kubebeast eval --checkpoint model --trust-checkpoint\n" in text
    assert "`env = 'my_envs:Maze-v0'`" in text


def test_commands_for_the_hub_begin_with_the_download(tmp_path: Path) -> None:
    publish(write_run(tmp_path), tmp_path / "model", to_hub="me/cart")
    text = card_of(tmp_path / "model").text
    assert "```sh\nhf download me/cart --local-dir cart\nkubebeast eval --checkpoint cart\n" in text
