"""A training that cannot save all of its state saves the rest, and its callbacks learn of the end."""

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubebeast_learner.config import ModelConfig, RolloutConfig, RunConfig, TrainingConfig
from kubebeast_learner.curriculum.base import CurriculumError
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.run.callbacks import Callbacks
from kubebeast_learner.run.checkpoint import CheckpointStore, Saved
from kubebeast_learner.training import loop
from kubebeast_learner.training.checkpoints import saving
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import JsonProgress
from kubebeast_runs.log import RunLog
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.training.scripted_actors import BATCHES, ScriptedActors


class Forgetful:
    """A curriculum with a state that a checkpoint holds only at the first call."""

    def __init__(self) -> None:
        self._num_calls = 0

    def next_level(self) -> dict[str, Any]:
        return {}

    def on_episode(self, *episode: object) -> None: ...

    def state_dict(self) -> Any:
        self._num_calls += 1
        return {"calls": self._num_calls if self._num_calls == 1 else {self._num_calls}}


class Ends:
    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_end(self, step: int, error: str) -> None:
        self.errors.append(error)


def train(folder: Path, ends: Ends, *, interval_minutes: float = 10.0) -> None:
    curriculum: Any = Forgetful()  # it lacks what is optional
    levels = Levels("forgetful", curriculum, ())
    levels.state_dict()
    config = TrainingConfig(
        run=RunConfig(
            xpid="run",
            savedir=str(folder),
            total_steps=10**9,
            device="cpu",
            compile="off",
            checkpoint_interval_minutes=interval_minutes,
        ),
        rollout=RolloutConfig(unroll_length=5, batch_size=4),
        model=ModelConfig(model="mlp"),
    )
    actors = ScriptedActors()
    with RunLog(folder, "run") as run_log:
        training = Training(
            config,
            actors=actors,
            store=CheckpointStore(LocalStorage(folder / "run"), keep=1),
            run_log=run_log,
            progress=JsonProgress(60.0, None),
            monitor=Monitor(),
            callbacks=Callbacks([("ends", ends)]),
            levels=levels,
        )
        training.run(actors.stop_asked, None)


@pytest.mark.parametrize(("interval_minutes", "most_batches"), [(1e-9, 1), (10.0, BATCHES)], ids=["meanwhile", "last"])
def test_a_curriculum_without_a_state_leaves_a_checkpoint_with_its_state_from_before(
    interval_minutes: float, most_batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(saving, "BUSY_S", 0.0)
    ends = Ends()

    with pytest.raises(CurriculumError, match="state_dict: returned a value without JSON"):
        train(tmp_path, ends, interval_minutes=interval_minutes)

    found = CheckpointStore(LocalStorage(tmp_path / "run"), keep=1).load_newest()
    assert found is not None and found[1]["stats"]["levels"] == {"curriculum": "forgetful", "state": {"calls": 1}}
    assert found[1]["step"] == most_batches * random_rollout().valid.sum()
    assert [error.partition(":")[0] for error in ends.errors] == ["CurriculumError"]


def test_callbacks_learn_of_a_last_checkpoint_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def fail(store: CheckpointStore, state: Mapping[str, Any]) -> Saved:
        attempts.append(state["step"])
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(CheckpointStore, "save", fail)
    monkeypatch.setattr(Forgetful, "state_dict", lambda _: {})
    ends = Ends()

    with pytest.raises(OSError, match="no disk"):
        train(tmp_path, ends)

    assert len(attempts) == 1
    assert ends.errors == ["OSError: [Errno 5] no disk"]
