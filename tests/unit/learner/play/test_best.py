"""eval, render and export choose the best checkpoint of a run by one rule, and name it in their output."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from kubebeast_learner.config import ConfigError, EvalConfig, ExportConfig, ModelConfig, RenderConfig
from kubebeast_learner.play import evaluate, export, render
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import load_path
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.play.playing import write_run

TRAINED = {1000: 1.5, 2000: 9.5, 3000: 2.5}
BY_TRAINING = "the best checkpoint by training: step 2,000, mean return 9.50"


@pytest.fixture
def savedir(tmp_path: Path) -> Path:
    """A folder with a run that was best in the middle."""
    folder = write_run(tmp_path / "cartpole", "CartPole-v1", ModelConfig(model="mlp"))
    (only,) = folder.glob("*.pt")
    state = load_path(only)
    only.unlink()
    store = CheckpointStore(LocalStorage(folder), keep=3)
    for step, score in TRAINED.items():
        store.save({**state, "step": step, "score": score})
    return tmp_path


def write_scores(savedir: Path, scores: Mapping[int, float], name: str = "eval.csv") -> None:
    rows = "".join(f"{step},{score}\n" for step, score in scores.items())
    (savedir / "cartpole" / name).write_text(f"# step,mean_return\n{rows}")


def play_eval(savedir: Path) -> int:
    return evaluate.run(EvalConfig(savedir=str(savedir), xpid="cartpole", episodes=1, best=True))


def play_render(savedir: Path) -> int:
    out, steps = savedir / "film.gif", 3
    return render.run(RenderConfig(savedir=str(savedir), xpid="cartpole", best=True, out=out, max_episode_steps=steps))


def play_export(savedir: Path) -> int:
    return export.run(
        ExportConfig(savedir=str(savedir), xpid="cartpole", best=True, out=savedir / "a.pt", format="torchscript")
    )


@pytest.mark.parametrize("command", [play_eval, play_render, play_export])
def test_a_command_plays_the_best_and_says_by_which_score(
    command: Callable[[Path], int], savedir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(savedir) == 0
    output = capsys.readouterr().out
    assert "step 2,000" in output and BY_TRAINING in output
    write_scores(savedir, {1000: 30.0, 3000: 20.0})
    assert command(savedir) == 0
    assert "the best checkpoint by evaluation: step 1,000, mean return 30.00" in capsys.readouterr().out


def test_json_has_the_choice_in_its_notes(savedir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = EvalConfig(savedir=str(savedir), xpid="cartpole", episodes=1, best=True, json=True)
    assert evaluate.run(config) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["step"], result["notes"]) == (2000, [BY_TRAINING])


def test_without_the_flag_the_newest_is_played(savedir: Path) -> None:
    write_scores(savedir, {1000: 30.0})
    evaluation = evaluate.evaluate(EvalConfig(savedir=str(savedir), xpid="cartpole", episodes=1))
    assert (evaluation.step, evaluation.notes) == (3000, [])


def test_the_evaluator_that_counts_has_to_be_named_if_there_are_several(savedir: Path) -> None:
    for name, scores in {"a": {1000: 1.0, 3000: 2.0}, "b": {1000: 2.0, 3000: 1.0}}.items():
        write_scores(savedir, scores, f"eval-{name}.csv")

    def step_of(evaluator: str) -> int:
        config = EvalConfig(savedir=str(savedir), xpid="cartpole", episodes=1, best=True, best_evaluator=evaluator)
        return evaluate.evaluate(config).step

    assert (step_of("a"), step_of("b")) == (3000, 1000)
    with pytest.raises(ConfigError, match="best = True, best_evaluator = '': it is unclear which evaluator counts"):
        step_of("")
    with pytest.raises(ConfigError, match="best_evaluator = 'c': the run has no scores of the evaluator 'c'"):
        step_of("c")


def test_a_run_without_scores_has_no_best(savedir: Path) -> None:
    (savedir / "cartpole" / "checkpoints.json").unlink()
    with pytest.raises(ConfigError, match=r"best = True.*: no checkpoint in .*cartpole has a score"):
        play_eval(savedir)


def test_the_weights_are_those_of_the_chosen_checkpoint(savedir: Path) -> None:
    folder = savedir / "cartpole"
    (best,) = folder.glob("*2000.pt")
    state = load_path(best)
    state["learner"]["model"]["policy.weight"].zero_()
    state["learner"]["model"]["policy.bias"].copy_(torch.tensor([50.0, -50.0]))
    torch.save(state, best)
    (episode,) = evaluate.evaluate(EvalConfig(savedir=str(savedir), xpid="cartpole", episodes=1, best=True)).episodes
    assert episode.length in (8, 9, 10), "it always pushes to the left"
