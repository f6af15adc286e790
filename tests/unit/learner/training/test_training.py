"""The training loop: the order in which it ends, and what it tells its monitor."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_common.env_config import EnvConfig
from kubebeast_learner.actors.env_spec import EnvSpec, Leaf
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ModelConfig, RolloutConfig, RunConfig, TrainingConfig
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.log import RunLog
from kubebeast_learner.run.task_returns import FinishedEpisode
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import LATER_UPDATE_S, Monitor
from kubebeast_learner.training.progress import JsonProgress
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.run.test_run_stats import Clock, pool

BATCHES = 3
SPEC = EnvSpec("Test-v0", (Leaf("position", "float32", (5,), 1, 0),), (Leaf("action", "int64", (), 1, 3),))
"""Of random_rollout."""


class ScriptedActors:
    """Delivers BATCHES batches and then asks for the end; keeps the order of what is asked of it."""

    profile_window: Window | None = None

    def __init__(self, clock: Clock) -> None:
        self.calls: list[str] = []
        self.stop_asked = threading.Event()
        self._clock = clock
        self._num_taken = 0

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec:
        return SPEC

    def expect(self, spec: EnvSpec) -> None:
        raise AssertionError("there is no other rank")

    def start(self, model: Model, device: torch.device, version: int) -> None:
        self.calls.append("start")

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        if self._num_taken == BATCHES:
            self.stop_asked.set()
            return None
        self._num_taken += 1
        return random_rollout()

    def publish(self, version: int) -> None:
        self._clock.now += LATER_UPDATE_S

    def check(self) -> None: ...

    def task_configs(self) -> Mapping[str, EnvConfig]:
        return {}

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        return ()

    def stats(self) -> Mapping[str, int]:
        return pool(streams=1)

    def drain(self, *, finished: bool) -> None:
        self.calls.append("drain, finished" if finished else "drain")

    def stop(self) -> None:
        self.calls.append("stop")


class TimedMonitor(Monitor):
    """Keeps what it would have answered at the end of every turn."""

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
) -> None:
    save = CheckpointStore.save

    def save_and_tell(store: CheckpointStore, state: Mapping[str, Any]) -> Path:
        actors.calls.append("save")
        return save(store, state)

    monkeypatch.setattr(CheckpointStore, "save", save_and_tell)
    config = TrainingConfig(
        run=RunConfig(xpid="run", savedir=folder, total_steps=total_steps, device="cpu", compile="off"),
        rollout=RolloutConfig(unroll_length=5, batch_size=4),
        model=ModelConfig(model="mlp"),
    )
    with RunLog(folder, "run") as run_log:
        training = Training(
            config,
            actors=actors,
            store=CheckpointStore(folder / "run", keep=1),
            run_log=run_log,
            progress=JsonProgress(60.0, None),
            monitor=monitor,
        )
        training.run(actors.stop_asked, None)


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
    assert monitor.answers == [""] * (1 + BATCHES + 1)
    assert monitor.snapshot is not None
    assert (monitor.snapshot.num_updates, monitor.snapshot.streams) == (BATCHES, 1)
    clock.now += LATER_UPDATE_S + 1.0
    assert monitor.problem() != ""


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
