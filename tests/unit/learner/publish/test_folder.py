"""The folder of a published model has what plays and trains it, and nothing about the machine of its training."""

from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

from kubebeast_learner.config import ConfigError, EvalConfig, LossConfig, PublishConfig, TasksConfig, TrainingConfig
from kubebeast_learner.play.trained_model import load_trained
from kubebeast_learner.publish import folder
from kubebeast_learner.publish.settings import PUBLIC
from kubebeast_learner.run.initial_weights import read_initial
from kubebeast_observe.plot.group import Group
from tests.unit.learner.play.playing import STEP
from tests.unit.learner.publish.published import ENV, RETURNS, add_score, publish, write_run


def test_a_folder_has_weights_settings_scores_curve_video_and_card(tmp_path: Path) -> None:
    run, out = write_run(tmp_path, returns=RETURNS), tmp_path / "model"
    add_score(run, STEP, 475.5, 3.25)
    (tmp_path / "film.mp4").write_bytes(b"film")
    names, _ = publish(run, out, video=tmp_path / "film.mp4")
    expected = ["README.md", "weights.safetensors", "config.yaml", "eval.csv", "curve.png", "replay.mp4"]
    assert names == expected and {path.name for path in out.iterdir()} == set(expected)
    assert (out / "replay.mp4").read_bytes() == b"film"
    assert (out / "eval.csv").read_bytes() == (run / "eval.csv").read_bytes()
    with Image.open(out / "curve.png") as picture:
        assert picture.width > picture.height > 100


def test_it_is_a_source_of_play_and_of_warm_starts(tmp_path: Path) -> None:
    run, out = write_run(tmp_path), tmp_path / "model"
    publish(run, out)
    saved = torch.load(run / f"checkpoint-{STEP:012d}.pt", weights_only=True)["learner"]["model"]
    trained = load_trained(EvalConfig(checkpoint=out))
    assert (trained.env_id, trained.step, trained.env_config and trained.env_config.time_limit) == (ENV, STEP, 200)
    initial = read_initial(str(out), str(tmp_path))
    for found in (load_file(out / "weights.safetensors"), trained.model.state_dict(), initial.tensors):
        torch.testing.assert_close(dict(found), saved, rtol=0, atol=0)


def test_a_published_folder_can_be_published(tmp_path: Path) -> None:
    publish(write_run(tmp_path, returns=RETURNS), tmp_path / "model")
    names, scores = publish(tmp_path / "model", tmp_path / "again")
    assert names == ["README.md", "weights.safetensors", "config.yaml"] and scores == []


def test_files_of_an_earlier_model_do_not_stay_and_others_do(tmp_path: Path) -> None:
    run, out = write_run(tmp_path), tmp_path / "model"
    out.mkdir()
    (out / "replay.gif").write_bytes(b"of another one")
    (out / "notes.txt").write_text("mine")
    names, _ = publish(run, out)
    assert not (out / "replay.gif").exists() and "notes.txt" not in names
    assert (out / "notes.txt").read_text() == "mine"


def test_settings_are_those_of_the_training_and_no_address_folder_or_option_of_a_tracker(tmp_path: Path) -> None:
    publish(write_run(tmp_path, loss=LossConfig(discounting=0.5)), tmp_path / "model")
    settings = yaml.safe_load((tmp_path / "model" / "config.yaml").read_text())
    assert (settings["env"], settings["time_limit"], settings["discounting"], settings["seed"]) == (ENV, 200, 0.5, 7)
    assert {"total_steps", "schedule_steps", "learning_rate_schedule"} <= set(settings) <= set(PUBLIC)
    for path in (tmp_path / "model").iterdir():
        content = path.read_bytes()
        assert b"secret" not in content and str(tmp_path).encode() not in content, path.name


def test_an_older_checkpoint_has_its_own_weights_and_the_curve_until_then(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    newest = torch.load(run / f"checkpoint-{STEP:012d}.pt", weights_only=True)
    changed = {name: tensor + 1 for name, tensor in newest["learner"]["model"].items()}
    torch.save({**newest, "step": 10, "learner": {"model": changed}}, run / "checkpoint-000000000010.pt")
    publish(f"{run}@10", tmp_path / "model")
    torch.testing.assert_close(load_file(tmp_path / "model" / "weights.safetensors"), changed, rtol=0, atol=0)
    assert "10 env-steps" in (tmp_path / "model" / "README.md").read_text().replace("\n", " ")
    publish(run / "checkpoint-000000000010.pt", tmp_path / "of-a-file")
    assert (tmp_path / "of-a-file" / "curve.png").exists(), "the file is in the folder of a run"


def test_the_curve_ends_at_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Group] = []
    monkeypatch.setattr(folder, "draw", lambda groups, path: drawn.extend(groups))
    publish(write_run(tmp_path), tmp_path / "model")
    ((curve,),) = [group.curves for group in drawn]
    assert curve.num_steps > STEP and STEP - STEP // 4 <= curve.steps[-1] <= STEP


def test_a_model_of_several_tasks_plays_each_of_them(tmp_path: Path) -> None:
    shares = f"{ENV}=1,Acrobot-v1=2"
    publish(write_run(tmp_path, base=TrainingConfig(), tasks=TasksConfig(task_shares=shares)), tmp_path / "model")
    trained = load_trained(EvalConfig(checkpoint=tmp_path / "model"))
    assert trained.tasks == (ENV, "Acrobot-v1")
    assert trained.playing("Acrobot-v1").task == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"run": "nothing"}, "run = 'nothing': there is no meta.json"),
        ({"run": "run", "video": Path("no.mp4")}, "video = .*no.mp4': there is no such file"),
        ({"run": "run@5"}, "has no checkpoint of step 5, it has: 1234"),
    ],
)
def test_a_source_that_is_not_there_is_a_wrong_setting(
    tmp_path: Path, settings: dict[str, object], reason: str
) -> None:
    write_run(tmp_path)
    with pytest.raises(ConfigError, match=reason):
        publish(settings.pop("run"), tmp_path / "model", savedir=str(tmp_path), **settings)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"to_hub": "name"}, "to_hub = 'name': must be OWNER/NAME"),
        ({"private": True}, "to_hub names none"),
        ({"video": Path("film.avi")}, "must end in .mp4 or .gif"),
        ({"out": Path("s3://bucket/model")}, "out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        PublishConfig(run="run", **settings)  # type: ignore[arg-type]
