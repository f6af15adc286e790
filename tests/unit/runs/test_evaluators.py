"""Evaluators of one run have files, locks and leases of their own."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kubebeast_common.settings import ConfigError
from kubebeast_runs.bucket import owned_run, pointer
from kubebeast_runs.bucket.copies import copy_run
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.home import evaluations_of, open_home
from kubebeast_runs.parts import TRAINING, evaluation, evaluators_among, is_evaluator
from kubebeast_runs.score_log import ScoreLog
from kubebeast_runs.scores import evaluators_in, read_scores
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files

STEP = 40


def write_scores(savedir: str, scores: Mapping[str, float]) -> None:
    """Writes a score of STEP for each evaluator, all at work at the same time."""
    if not scores:
        return
    (name, score), *others = scores.items()
    with (
        open_home(savedir, "run", threading.Event(), evaluation(name)) as home,
        ScoreLog(home.savedir / "run", name) as log,
    ):
        home.begin(log.failures)
        log.add(STEP, {"mean_return": score}, {})
        write_scores(savedir, dict(others))


def read(evaluations: Mapping[str, Files]) -> dict[str, list[float]]:
    tables = {name: read_scores(files, name) for name, files in evaluations.items()}
    return {name: list(table.columns["mean_return"]) for name, table in tables.items()}


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_each_writes_its_scores_beside_those_of_the_others(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "run").mkdir()
    savedir = str(tmp_path) if place == "folder" else str(request.getfixturevalue("url"))
    scores = {"": 1.0, "greedy": 2.0, "sampling-2": 3.0}
    write_scores(savedir, scores)
    expected = {name: [score] for name, score in scores.items()}
    assert read(evaluations_of(savedir, "run")) == expected
    folder = tmp_path / "run" if place == "folder" else copy_run(savedir, "run", with_checkpoints=False)
    assert evaluators_in(LocalStorage(folder)) == list(scores)
    assert sorted(path.name for path in folder.glob("*.csv")) == ["eval-greedy.csv", "eval-sampling-2.csv", "eval.csv"]


def test_tensorboard_shows_each_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_scores(str(tmp_path), {"": 1.0, "greedy": 2.0})
    for name, score in {"eval": 1.0, "eval-greedy": 2.0}.items():
        events = EventAccumulator(str(tmp_path / "run" / "tensorboard" / name)).Reload()
        assert [event.value for event in events.Scalars("eval/mean_return")] == [score]


def test_in_a_bucket_one_of_each_name_plays_a_run(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer, "LEASE_S", 5.0)
    monkeypatch.setattr(owned_run, "RENEWAL_S", 0.05)
    stop = threading.Event()
    with open_home(bucket.url, "run", stop, evaluation("greedy")) as home:
        home.begin(WriteFailures(home.savedir / "run"))
        with pytest.raises(
            ConfigError, match=r"name = 'greedy': process \d+ on \S+ follows the run 'run' by this name"
        ):
            open_home(bucket.url, "run", stop, evaluation("greedy"))
        with open_home(bucket.url, "run", stop, evaluation("sampling")):
            home.require()


def test_the_refusal_of_a_second_process_names_the_way_out() -> None:
    assert TRAINING.refusal("a", "b") == "xpid = 'a': b trains this run; stop it or choose another xpid"
    assert evaluation().refusal("a", "b").endswith("follows this run; stop it, or set a name for this evaluator")
    assert (
        evaluation("c").refusal("a", "b").endswith("follows the run 'a' by this name; stop it or choose another name")
    )


def test_names_are_told_from_other_files() -> None:
    assert evaluators_among(["eval-b", "run", "eval", "eval-", "eval-a.b", "evaluation", "eval-b-2", "logs"]) == [
        "",
        "b",
        "b-2",
    ]
    assert [name for name in ("a", "A-1_x", "", "-a", "a/b", "a.b", "..", "a" * 64, "ä") if is_evaluator(name)] == [
        "a",
        "A-1_x",
    ]
