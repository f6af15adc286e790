"""Checkpoints are saved while the training goes on."""

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm import DivergedError
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ModelConfig, RolloutConfig, RunConfig, TrainingConfig
from kubebeast_learner.models import Model
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import load_path
from kubebeast_learner.training import loop
from kubebeast_learner.training.checkpoints import saving
from kubebeast_learner.training.checkpoints.state_copy import StateCopy
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import JsonProgress
from kubebeast_runs.log import RunLog
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.training.scripted_actors import ScriptedActors

PATIENCE_S = 60.0


class HeldStorage(LocalStorage):
    """Holds the first file until it is released, or fails it."""

    def __init__(self, folder: Path, error: OSError | None = None) -> None:
        super().__init__(folder)
        self.began, self.released = threading.Event(), threading.Event()
        self._error = error
        self.num_created = 0

    @contextmanager
    def create(self, name: str) -> Iterator[FileIO]:
        self.num_created += 1
        if self.num_created == 1:
            self.began.set()
            assert self.released.wait(PATIENCE_S)
            if self._error is not None:
                raise self._error
        with super().create(name) as file:
            yield file


class ActorsUntil(ScriptedActors):
    """Delivers batches until `is_done` returns True for their number so far."""

    def __init__(self, is_done: Callable[[int], bool]) -> None:
        super().__init__()
        self._is_done = is_done

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        self._num_taken += 1
        if self._is_done(self._num_taken):
            self.stop_asked.set()
            return None
        return random_rollout()


def train(storage: LocalStorage, actors: ScriptedActors, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(loop, "CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(saving, "RETRY_S", 0.0)
    monkeypatch.setattr(saving, "BUSY_S", 0.0)
    config = TrainingConfig(
        run=RunConfig(
            xpid="run",
            savedir=str(folder),
            total_steps=10**9,
            device="cpu",
            compile="off",
            checkpoint_interval_minutes=1e-9,
            keep_checkpoints=10**6,
        ),
        rollout=RolloutConfig(unroll_length=5, batch_size=4),
        model=ModelConfig(model="mlp"),
    )
    with RunLog(folder, "run") as run_log:
        training = Training(
            config,
            actors=actors,
            store=CheckpointStore(storage, keep=10**6),
            run_log=run_log,
            progress=JsonProgress(60.0, None),
            monitor=Monitor(),
        )
        training.run(actors.stop_asked, None)


def test_updates_go_on_while_a_checkpoint_is_written_and_do_not_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = HeldStorage(tmp_path / "run")
    since_begin: list[int] = []

    def is_done(num_taken: int) -> bool:
        if storage.began.is_set():
            since_begin.append(num_taken)
        if len(since_begin) == 4:
            storage.released.set()
        return len(since_begin) > 4 and storage.num_created > 1

    train(storage, ActorsUntil(is_done), tmp_path, monkeypatch)
    first = load_path(min((tmp_path / "run").glob("checkpoint-*.pt")))
    per_batch = int(random_rollout().valid.sum())
    assert first["learner"]["version"] * per_batch == first["step"] <= since_begin[0] * per_batch

    # The same updates again, up to the copied one.
    same_updates = ActorsUntil(lambda num_taken: num_taken > first["learner"]["version"])
    train(LocalStorage(tmp_path / "again"), same_updates, tmp_path / "again", monkeypatch)
    expected = load_path(max((tmp_path / "again").glob("checkpoint-*.pt")))
    torch.testing.assert_close(first["learner"]["optimizer"], expected["learner"]["optimizer"], rtol=0, atol=0)


def test_a_checkpoint_that_fails_in_the_background_is_counted_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = HeldStorage(tmp_path / "run", OSError(errno.ENOSPC, "no space"))
    storage.released.set()
    actors = ActorsUntil(lambda _: storage.num_created > 1)
    with caplog.at_level(logging.ERROR):
        train(storage, actors, tmp_path, monkeypatch)
    assert [text for text in caplog.messages if "not saved" in text and "no space" in text]
    assert list((tmp_path / "run").glob("checkpoint-*.pt"))


class SpoiltActors(ScriptedActors):
    """Spoils the weights after the third update, and has no further batch."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        super().start(model, device, version)
        self._model = model

    def publish(self, version: int) -> None:
        if version == 3:
            with torch.no_grad():
                next(self._model.parameters()).fill_(torch.nan)

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        self._num_taken += 1
        return random_rollout() if self._num_taken <= 3 else None


def test_weights_that_are_not_finite_end_the_training_once_their_save_has_found_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DivergedError, match=r"those from before stay: learner\.model\..* holds nan"):
        train(LocalStorage(tmp_path / "run"), SpoiltActors(), tmp_path, monkeypatch)


def ready(copy: StateCopy, state: dict[str, Any]) -> StateCopy:
    while not copy.is_ready(state):
        pass
    return copy


def test_a_copy_has_the_layouts_and_shared_tensors_of_the_state() -> None:
    shared = torch.randn(3, 4)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    state = {"step": 7, "list": [shared, (shared, "text")], "image": image, "empty": torch.zeros(0, 2), "none": None}
    copied = ready(StateCopy(), state).take(state)
    assert copied["list"][0] is copied["list"][1][0] is not shared
    assert copied["image"].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(copied["list"][0], shared) and torch.equal(copied["image"], image)
    assert (copied["step"], copied["list"][1][1], copied["none"], copied["empty"].shape) == (7, "text", None, (0, 2))


def test_a_copy_uses_the_same_memory_again_and_maps_what_is_new() -> None:
    copy, state = StateCopy(), {"a": torch.ones(3)}
    first = ready(copy, state).take(state)["a"]
    state["a"] += 1
    second = ready(copy, state).take(state)["a"]
    assert first.data_ptr() == second.data_ptr() and second.tolist() == [2.0, 2.0, 2.0]
    grown = {"a": torch.zeros(4), "b": torch.ones(1, dtype=torch.int64)}
    assert not copy.is_ready(grown)
    copied = ready(copy, grown).take(grown)
    assert copied["a"].shape == (4,) and copied["b"].dtype == torch.int64
