"""The training loop ends in a fixed order, and its monitor sees every turn."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm import DivergedError, Learner, UpdateStats
from kubebeast_learner.algorithm.gradient_steps import GradientSteps
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ModelConfig, RolloutConfig, RunConfig, TrainingConfig
from kubebeast_learner.machine.out_of_memory import NotEnoughMemoryError
from kubebeast_learner.run.checkpoint import FORMAT, CheckpointStore, Saved
from kubebeast_learner.run.state import Checkpoint
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import LATER_UPDATE_S, Monitor
from kubebeast_learner.training.progress import JsonProgress
from kubebeast_runs.log import RunLog
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.run.test_run_stats import Clock
from tests.unit.learner.training.scripted_actors import BATCHES, ScriptedActors


class TimedMonitor(Monitor):
    """Records its answers at the end of every turn."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.answers: list[str] = []

    def note_turn(self) -> None:
        self.answers.append(self.problem())
        super().note_turn()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def actors(clock: Clock) -> ScriptedActors:
    return ScriptedActors(clock)


def train(
    actors: ScriptedActors,
    monitor: Monitor,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    total_steps: int = 10**9,
    saved: tuple[str, dict[str, Any]] | None = None,
) -> None:
    save = CheckpointStore.save

    def save_and_tell(store: CheckpointStore, state: Mapping[str, Any]) -> Saved:
        actors.calls.append("save")
        return save(store, state)

    monkeypatch.setattr(CheckpointStore, "save", save_and_tell)
    config = TrainingConfig(
        run=RunConfig(xpid="run", savedir=str(folder), total_steps=total_steps, device="cpu", compile="off"),
        rollout=RolloutConfig(unroll_length=5, batch_size=4),
        model=ModelConfig(model="mlp"),
    )
    with RunLog(folder, "run") as run_log:
        training = Training(
            config,
            actors=actors,
            store=CheckpointStore(LocalStorage(folder / "run"), keep=1),
            run_log=run_log,
            progress=JsonProgress(60.0, None),
            monitor=monitor,
        )
        training.run(actors.stop_asked, saved and (saved[0], Checkpoint.of(*saved)))


def test_nobody_is_taken_in_while_the_last_checkpoint_is_written_and_streams_end_after_it(
    actors: ScriptedActors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(actors, Monitor(), tmp_path, monkeypatch)
    assert actors.calls == ["start", "drain", "save", "stop"]


def test_the_monitor_sees_every_turn_and_the_newest_snapshot(
    actors: ScriptedActors, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = TimedMonitor(clock)
    train(actors, monitor, tmp_path, monkeypatch)
    assert monitor.answers == [""] * (2 + BATCHES + 1)  # two turns wait for room and the environment
    assert monitor.snapshot is not None
    assert (monitor.snapshot.num_updates, monitor.snapshot.streams) == (BATCHES, 1)
    clock.now += LATER_UPDATE_S + 1.0
    assert monitor.problem() != ""


class SpoiltActors(ScriptedActors):
    """Batches after the first `since` have rewards of NaN."""

    def __init__(self, clock: Clock, since: int) -> None:
        super().__init__(clock)
        self._since = since

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        self._num_taken += 1
        rollout = random_rollout()
        return replace(rollout, rewards=rollout.rewards * torch.nan) if self._num_taken > self._since else rollout


def test_a_training_that_diverges_leaves_the_checkpoints_from_before(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(LocalStorage(tmp_path / "run"), keep=1)
    store.save({"format": FORMAT, "step": 0, "env_spec": {}, "config": {}, "learner": {"model": {}}})
    before = store.checkpoints()
    with pytest.raises(DivergedError, match="10 updates in a row"):
        train(SpoiltActors(clock, since=2), Monitor(), tmp_path, monkeypatch)
    assert store.checkpoints() == before


def test_a_training_that_diverges_before_its_first_checkpoint_saves_what_is_finite(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DivergedError, match="10 updates in a row"):
        train(SpoiltActors(clock, since=2), Monitor(), tmp_path, monkeypatch)
    found = CheckpointStore(LocalStorage(tmp_path / "run"), keep=1).load_newest()
    assert found is not None and found[1]["learner"]["version"] == 2
    assert found[1]["step"] == 2 * random_rollout().valid.sum(), "steps of skipped updates are not counted"


@pytest.mark.parametrize("total_steps", [1, 10**9])
def test_a_state_that_is_not_finite_takes_the_place_of_no_checkpoint(
    total_steps: int, actors: ScriptedActors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Learner.update

    def spoil(learner: Learner, *arguments: Any) -> UpdateStats:
        stats = update(learner, *arguments)
        with torch.no_grad():
            next(learner.model.parameters()).fill_(torch.inf)
        return stats

    monkeypatch.setattr(Learner, "update", spoil)
    with pytest.raises(DivergedError, match=r"model\.torso\..* holds inf"):
        train(actors, Monitor(), tmp_path, monkeypatch, total_steps)
    assert CheckpointStore(LocalStorage(tmp_path / "run"), keep=1).checkpoints() == []
    assert "save" not in actors.calls


def test_a_lack_of_memory_says_what_to_lower(
    actors: ScriptedActors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(*arguments: Any) -> None:
        torch.empty(2**60, dtype=torch.uint8)

    monkeypatch.setattr(GradientSteps, "_forward_eager", allocate)
    with pytest.raises(
        NotEnoughMemoryError, match="an update of 4 unrolls of 5 transitions on cpu: lower batch_size or"
    ):
        train(actors, Monitor(), tmp_path, monkeypatch)


def test_a_run_that_was_trained_to_its_end_says_that_nothing_is_left(
    actors: ScriptedActors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    train(actors, Monitor(), tmp_path, monkeypatch)
    saved = CheckpointStore(LocalStorage(tmp_path / "run"), keep=1).load_newest()
    assert saved is not None
    step = saved[1]["step"]
    train(ScriptedActors(Clock()), Monitor(), tmp_path, monkeypatch, step, saved)
    reason = f"it has made {step} steps and total_steps is {step}"
    assert f"nothing is left of the run: {reason}; give a larger number to go on" in caplog.messages


@pytest.mark.parametrize(("total_steps", "warns"), [(19, True), (20, False)])
def test_a_run_of_less_than_a_batch_is_warned_of(
    total_steps: int,
    warns: bool,
    actors: ScriptedActors,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    train(actors, Monitor(), tmp_path, monkeypatch, total_steps)
    expected = [f"total_steps = {total_steps} is less than one batch, unroll_length * batch_size = 20 env-steps"]
    assert [text.partition(":")[0] for text in caplog.messages if "total_steps" in text] == expected * warns
