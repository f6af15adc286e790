"""A run keeps its best checkpoints beside its newest, through kills, resumes and lost leases, and finds them again."""

import itertools
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointReader, CheckpointStore
from kubebeast_learner.run.checkpoint_file import load
from kubebeast_learner.training.checkpoints.background import BackgroundSave
from kubebeast_runs.best.training_scores import read_training_scores
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import take_lease
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.bucket.storage import BucketStorage
from kubebeast_runs.checkpoints import list_checkpoints, name_of
from kubebeast_runs.names import CHECKPOINTS
from kubebeast_runs.parts import TRAINING
from kubebeast_runs.scores import ScoreError
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files, Storage

RISES_AND_FALLS = {10: 1.0, 20: 9.0, 30: 5.0, 40: 2.0, 50: 1.5}


def state(step: int, score: float | None = None) -> dict[str, Any]:
    learner = {"model": {"weight": torch.full((10,), float(step))}}
    content = {"format": checkpoint.FORMAT, "step": step, "env_spec": {}, "config": {}, "learner": learner}
    return content if score is None else {**content, "score": score}


def save(store: CheckpointStore, scores: Mapping[int, float | None]) -> None:
    for step, score in scores.items():
        store.save(state(step, score))


def steps(files: Files) -> list[int]:
    return [saved.step for saved in list_checkpoints(files)]


def best(files: Files) -> int:
    return CheckpointReader(files).load_best({})[0].saved.step


def test_the_best_stay_beside_the_newest(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=1, keep_best=2), RISES_AND_FALLS)
    assert steps(storage) == [50, 30, 20] and best(storage) == 20


def test_by_default_only_the_newest_stay_and_their_scores_are_known(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=2), RISES_AND_FALLS)
    assert steps(storage) == [50, 40] and best(storage) == 40
    assert read_training_scores(storage) == {30: 5.0, 40: 2.0, 50: 1.5}, "older ones are forgotten with the next save"


def test_a_resumed_run_goes_on_judging_the_old_ones(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=1, keep_best=1), RISES_AND_FALLS)
    save(CheckpointStore(storage, keep=1, keep_best=1), {60: 3.0, 70: 4.0})
    assert steps(storage) == [70, 20]
    save(CheckpointStore(storage, keep=1, keep_best=1), {80: 9.0, 90: 0.0})
    assert steps(storage) == [90, 80], "of equal ones, the newer is the better"


def test_a_checkpoint_without_a_score_is_never_best(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=1, keep_best=2), {10: None, 20: math.nan, 30: -7.0, 40: math.inf, 50: None})
    assert steps(storage) == [50, 30] and best(storage) == 30


def test_a_run_of_a_version_without_scores_goes_on(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=3), dict.fromkeys((10, 20, 30)))
    assert not (tmp_path / CHECKPOINTS).exists()
    with pytest.raises(ScoreError, match=r"no checkpoint in .* has a score"):
        best(storage)
    save(CheckpointStore(storage, keep=1, keep_best=1), {40: 1.0, 50: 0.5})
    assert steps(storage) == [50, 40]


def test_checkpoints_of_higher_steps_stay_and_take_no_place_of_the_best(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    store = CheckpointStore(storage, keep=1, keep_best=1)
    save(store, {100: 50.0, 10: 3.0, 20: 2.0, 30: 1.0})
    assert steps(storage) == [100, 30, 10]


def test_an_evaluator_judges_with_the_scores_that_it_has_at_each_save(tmp_path: Path) -> None:
    storage, scores = LocalStorage(tmp_path), dict[int, float]()
    store = CheckpointStore(storage, keep=2, keep_best=1, evaluation_scores=lambda: [scores])
    save(store, {10: 9.0, 20: 8.0})
    scores |= {20: 1.0}
    save(store, {30: 0.0, 40: 0.0})
    assert steps(storage) == [40, 30, 20], "the score of the training does not count"
    scores |= {30: 7.0, 40: math.nan}
    save(store, {50: 0.0, 60: 0.0})
    assert steps(storage) == [60, 50, 30]


def test_scores_that_cannot_be_read_delete_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers: Iterator[Sequence[Mapping[int, float]] | OSError] = iter(
        [[], [{10: 5.0}], OSError("no answer"), [{10: 5.0}]]
    )

    def read() -> Sequence[Mapping[int, float]]:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    storage = LocalStorage(tmp_path)
    store = CheckpointStore(storage, keep=1, keep_best=1, evaluation_scores=read)
    save(store, dict.fromkeys((10, 20, 30)))
    assert steps(storage) == [30, 20, 10] and "not deleted: no answer" in caplog.text
    save(store, {40: None})
    assert steps(storage) == [40, 10]


def test_a_record_that_is_damaged_costs_no_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=1, keep_best=1), {10: 5.0, 20: 1.0})
    (tmp_path / CHECKPOINTS).write_text("{")
    store = CheckpointStore(storage, keep=1, keep_best=1)
    save(store, {30: 1.0})
    assert steps(storage) == [30, 20, 10] and "the score of the checkpoint at step 30 not written" in caplog.text
    (tmp_path / CHECKPOINTS).unlink()
    save(store, {40: 0.5})
    assert steps(storage) == [40, 30], "the score of before is written with the next one"


class Killed(BaseException):
    """The process ends."""


class MortalStorage(LocalStorage):
    """A folder whose process is killed before its change number `num_left`."""

    def __init__(self, folder: Path, num_left: float) -> None:
        super().__init__(folder)
        self.num_left = num_left

    @contextmanager
    def create(self, name: str) -> Iterator[FileIO]:
        with super().create(name) as file:
            yield file
            self._live()

    def delete(self, name: str) -> None:
        self._live()
        super().delete(name)

    def _live(self) -> None:
        if self.num_left <= 0:
            raise Killed
        self.num_left -= 1


def test_a_kill_at_any_moment_leaves_the_best_and_the_newest_whole(tmp_path: Path) -> None:
    for num_left in itertools.count():
        folder = tmp_path / str(num_left)
        save(CheckpointStore(LocalStorage(folder), keep=1, keep_best=1), {10: 1.0, 20: 9.0, 30: 5.0})
        storage = MortalStorage(folder, num_left)
        try:
            save(CheckpointStore(storage, keep=1, keep_best=1), {40: 10.0, 50: 2.0})
            is_over = True
        except Killed:
            is_over = False
        files = LocalStorage(folder)
        found = list_checkpoints(files)
        assert [load(files, saved.file.name)["step"] for saved in found] == [saved.step for saved in found]
        assert best(files) == (40 if 40 in steps(files) else 20) and steps(files)[0] >= 30
        save(CheckpointStore(files, keep=1, keep_best=1), {60: 0.0})
        assert steps(files) == [60, best(files)]
        if is_over:
            break
    assert num_left >= 8, "two saves of a score, a checkpoint, a deletion and the weights"


def test_a_learner_that_lost_its_lease_deletes_nothing() -> None:
    bucket = Bucket("memory://lost-best")

    def own() -> Storage:
        return BucketStorage(bucket, "run", take_lease(bucket, "run", TRAINING, lambda seconds: False))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kubebeast_runs.bucket.pointer.LEASE_S", 0.0)
        sleeper = CheckpointStore(own(), keep=1, keep_best=1)
        save(sleeper, {10: 9.0, 20: 1.0})
        own()
    files = RunFiles(bucket, "run")
    before = [(saved.step, saved.file.version) for saved in list_checkpoints(files)]
    with pytest.raises(LeaseLostError):
        sleeper.save(state(30, 99.0))
    assert [(saved.step, saved.file.version) for saved in list_checkpoints(files)] == before
    assert best(files) == 10 and load(files, name_of(10))["step"] == 10


def test_the_best_that_is_damaged_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = LocalStorage(tmp_path)
    save(CheckpointStore(storage, keep=5), RISES_AND_FALLS)
    (tmp_path / name_of(20)).write_bytes(b"")
    assert best(storage) == 30 and "is damaged: it is empty; trying the next best" in caplog.text


class ChangingFiles(LocalStorage):
    """A folder in which something happens before each read of a checkpoint."""

    def __init__(self, folder: Path, happen: Callable[[str], None]) -> None:
        super().__init__(folder)
        self._happen = happen

    def open(self, name: str) -> Any:
        if name != CHECKPOINTS:
            self._happen(name)
        return super().open(name)


def test_a_best_one_that_a_better_one_replaces_while_it_is_chosen_is_no_failure(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1, keep_best=1)
    save(store, {10: 5.0, 20: 1.0})
    better = iter([(30, 6.0), (40, 0.0)])
    reader = CheckpointReader(ChangingFiles(tmp_path, lambda name: save(store, dict(better))))
    chosen, _, content = reader.load_best({})
    assert (chosen.saved.step, chosen.score, content["step"]) == (30, 6.0, 30)


def test_a_best_one_that_is_always_deleted_is_an_error(tmp_path: Path) -> None:
    save(CheckpointStore(LocalStorage(tmp_path), keep=5), dict.fromkeys(range(1, 6), 1.0))
    reader = CheckpointReader(ChangingFiles(tmp_path, lambda name: (tmp_path / name).unlink()))
    with pytest.raises(CheckpointError, match=r"checkpoint .*000001\.pt is not there, or no longer"):
        reader.load_best({})


def test_scores_are_read_and_written_by_the_thread_that_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    threads: set[str] = set()

    def read() -> Sequence[Mapping[int, float]]:
        threads.add(threading.current_thread().name)
        return [{10: 1.0}]

    saving = BackgroundSave(CheckpointStore(LocalStorage(tmp_path), keep=1, keep_best=1, evaluation_scores=read))
    for step in (10, 20, 30):
        saving.start(state(step, 1.0))
        saving.take(wait=True)
    assert threads == {"checkpoint"} and steps(LocalStorage(tmp_path)) == [30, 10]
    assert not caplog.records
