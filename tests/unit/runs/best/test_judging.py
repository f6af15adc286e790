"""One rule chooses the best checkpoint: by an evaluator that has scores, or else by the training."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubebeast_runs.best.judging import EvaluationScores, judged
from kubebeast_runs.best.training_scores import TrainingScores, read_training_scores
from kubebeast_runs.checkpoints import name_of
from kubebeast_runs.home import evaluations_in
from kubebeast_runs.names import CHECKPOINTS
from kubebeast_runs.scores import ScoreError
from kubebeast_runs.storage.local import LocalStorage

TRAINED = {10: 1.0, 20: 5.0, 30: 2.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with three checkpoints and the scores of its training."""
    folder = tmp_path / "run"
    storage, scores = LocalStorage(folder), TrainingScores(LocalStorage(folder))
    for step, score in TRAINED.items():
        scores.note(step, score, list(TRAINED))
        with storage.create(name_of(step)) as file:
            file.write(b"whole")
    return folder


def write_scores(folder: Path, scores: Mapping[int, object], name: str = "eval.csv") -> None:
    rows = "".join(f"{tick},0,{step},{score}\n" for tick, (step, score) in enumerate(scores.items()))
    (folder / name).write_text(f"# _tick,_time,step,mean_return\n{rows}")


def best(folder: Path, evaluator: str = "") -> tuple[list[int], str]:
    """Returns the steps, the best first, and the message about the best."""
    found = judged(LocalStorage(folder), evaluations_in(folder), evaluator)
    return [each.saved.step for each in found], str(found[0])


def test_without_an_evaluator_the_training_decides(folder: Path) -> None:
    assert best(folder) == ([20, 30, 10], "the best checkpoint by training: step 20, mean return 5.00")


def test_an_evaluator_decides_as_soon_as_it_has_scored_a_checkpoint_that_is_there(folder: Path) -> None:
    write_scores(folder, {5: 100.0, 20: "nan"})
    assert best(folder)[0] == [20, 30, 10]
    write_scores(folder, {5: 100.0, 10: 7.5, 20: "nan", 30: -3.0})
    assert best(folder) == ([10, 30], "the best checkpoint by evaluation: step 10, mean return 7.50")


def test_the_evaluator_without_a_name_counts_or_the_only_one_or_the_one_that_is_named(folder: Path) -> None:
    write_scores(folder, {10: 9.0, 30: 1.0}, "eval-greedy.csv")
    assert best(folder) == ([10, 30], "the best checkpoint by the evaluator 'greedy': step 10, mean return 9.00")
    write_scores(folder, {10: 1.0, 30: 9.0}, "eval-sampling.csv")
    with pytest.raises(ScoreError, match="unclear which evaluator counts; evaluators with scores: greedy, sampling"):
        best(folder)
    assert best(folder, "sampling")[0] == [30, 10]
    write_scores(folder, {20: 3.0})
    assert best(folder)[0] == [20]
    with pytest.raises(ScoreError, match=r"no scores of the evaluator 'other'; .*: greedy, sampling, the one without"):
        best(folder, "other")


def test_a_run_without_a_score_says_so(folder: Path) -> None:
    (folder / CHECKPOINTS).unlink()
    assert read_training_scores(LocalStorage(folder)) == {}
    with pytest.raises(ScoreError, match=r"no checkpoint in .*run has a score, of an evaluator or of the training"):
        best(folder)
    write_scores(folder, {5: 1.0}, "eval-late.csv")
    with pytest.raises(ScoreError, match=r"no checkpoint in .*run has a score of the evaluator 'late'"):
        best(folder, "late")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2, "checkpoints": {}}', '{"format": 1}', "\xff"])
def test_a_file_that_is_no_list_of_checkpoints_is_an_error_and_not_a_run_without_scores(
    content: str, folder: Path
) -> None:
    (folder / CHECKPOINTS).write_text(content, encoding="latin-1")
    with pytest.raises(OSError, match=rf"{CHECKPOINTS} is no list of checkpoints"):
        read_training_scores(LocalStorage(folder))


def test_a_score_is_forgotten_with_its_checkpoint(folder: Path) -> None:
    scores = TrainingScores(LocalStorage(folder))
    scores.note(40, None, [20, 30])
    assert read_training_scores(LocalStorage(folder)) == {20: 5.0, 30: 2.0}
    scores.note(20, 6.0, [30])
    assert read_training_scores(LocalStorage(folder)) == {20: 6.0, 30: 2.0}


def test_a_training_is_given_the_scores_of_its_evaluator_and_in_doubt_of_each(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    place = (str(folder.parent), folder.name)
    scores = EvaluationScores(*place, "")
    assert scores.read() == []
    write_scores(folder, {10: 9.0}, "eval-greedy.csv")
    assert scores.read() == [{10: 9.0}] and EvaluationScores(*place, "late").read() == []
    write_scores(folder, {30: 1.0}, "eval-sampling.csv")
    assert scores.read() == scores.read() == [{10: 9.0}, {30: 1.0}]
    assert caplog.text.count("best_evaluator = '': it is unclear which evaluator counts") == 1
    assert EvaluationScores(*place, "sampling").read() == [{30: 1.0}]
