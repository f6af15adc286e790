"""A notice for a node leads to a checkpoint and a row of the log at once, and the training goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from harness.processes.training_process import rows
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ModelConfig, RolloutConfig, RunConfig, TrainingConfig
from kubebeast_learner.ranks import turns
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.training.checkpoints import saving
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import JsonProgress
from kubebeast_runs.log import RunLog
from kubebeast_runs.storage.local import LocalStorage
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.training.scripted_actors import ScriptedActors

STEPS_OF_A_BATCH = int(random_rollout().valid.sum())


class Script(ScriptedActors):
    """Calls `before` with the number of each wait, which gets a batch if it returns True; None is the end."""

    def __init__(self, before: Callable[[int], bool | None]) -> None:
        super().__init__()
        self._before = before

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        self._num_taken += 1
        has_batch = self._before(self._num_taken)
        if has_batch is None:
            self.stop_asked.set()
        return random_rollout() if has_batch else None


def train(folder: Path, monitor: Monitor, before: Callable[[int], bool | None]) -> None:
    """Trains with a checkpoint every ten minutes and a row every hour."""
    actors = Script(before)
    config = TrainingConfig(
        run=RunConfig(
            xpid="run", savedir=str(folder), total_steps=10**9, device="cpu", compile="off", log_interval_s=3600.0
        ),
        rollout=RolloutConfig(unroll_length=5, batch_size=4),
        model=ModelConfig(model="mlp"),
    )
    with RunLog(folder, "run") as run_log:
        training = Training(
            config,
            actors=actors,
            store=CheckpointStore(LocalStorage(folder / "run"), keep=9),
            run_log=run_log,
            progress=JsonProgress(3600.0, None),
            monitor=monitor,
        )
        training.run(actors.stop_asked, None)


def saved_batches(folder: Path) -> list[int]:
    """Returns the number of batches in each checkpoint."""
    names = sorted(path.stem for path in (folder / "run").glob("checkpoint-*.pt"))
    return [int(name.rpartition("-")[2]) // STEPS_OF_A_BATCH for name in names]


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "BUSY_S", 0.0)


@pytest.mark.parametrize("has_batch", [True, False])
def test_each_notice_is_one_checkpoint_at_once_with_or_without_further_batches(tmp_path: Path, has_batch: bool) -> None:
    monitor = Monitor()
    counts: list[int] = []

    def before(number: int) -> bool | None:
        found = len(saved_batches(tmp_path))
        if number <= 3:
            assert found == 0
            return True
        if number == 4 or (found == 1 and len(counts) == 1):
            monitor.notices.add()
            counts.append(found)
            return has_batch or number > 4
        return None if found == 2 else has_batch

    train(tmp_path, monitor, before)
    assert counts == [0, 1]
    first, second, *last = saved_batches(tmp_path)
    assert 3 <= first < second
    assert len(last) == int(has_batch), "the final checkpoint has what was trained since"
    assert [row["node_notices"] for row in rows(tmp_path / "run")] == ["1", "2", "2"], "a row comes with each notice"
    assert monitor.snapshot is not None and monitor.snapshot.node_notices == 2


def test_a_notice_before_the_first_update_is_a_checkpoint_after_it(tmp_path: Path) -> None:
    monitor = Monitor()
    monitor.notices.add()

    def before(number: int) -> bool | None:
        return None if number > 3 and saved_batches(tmp_path) else number >= 3

    train(tmp_path, monitor, before)
    assert saved_batches(tmp_path)[0] >= 1


def test_a_notice_for_the_node_of_another_rank_is_a_checkpoint_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_turns = 0

    def with_other(mine: torch.Tensor) -> torch.Tensor:
        nonlocal num_turns
        if len(mine) < 6:  # of the start
            return mine
        num_turns += 1
        other = torch.zeros_like(mine)
        other[5] = num_turns == 3
        return mine + other

    monkeypatch.setattr(turns, "sum_over_ranks", with_other)
    train(tmp_path, Monitor(), lambda _: None if saved_batches(tmp_path) else True)
    assert saved_batches(tmp_path)[0] >= 2
    assert [row["node_notices"] for row in rows(tmp_path / "run")] == ["1", "1"]
