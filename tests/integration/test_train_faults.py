"""A training continues after faults that it can survive, and leaves a checkpoint if it cannot."""

import errno
import json
import logging
import math
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from kubebeast_learner.actors.remote import actors as remote_actors
from kubebeast_learner.commands import train
from kubebeast_learner.config import (
    LearnerConfig,
    LocalFleetConfig,
    ModelConfig,
    PoolConfig,
    RolloutConfig,
    RunConfig,
    TrainConfig,
)
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.run.checkpoint import CheckpointStore, Saved
from kubebeast_learner.run.snapshot import Snapshot
from kubebeast_learner.training import run as training_run
from kubebeast_runs.storage.local import LocalStorage
from tests.child_processes import ENV_SERVER, children


class Watcher:
    """A progress display that checks every snapshot and asks the run to stop once `is_done` is true."""

    interval_s = 0.05

    def __init__(self, is_done: Callable[[Snapshot], bool]) -> None:
        self._is_done = is_done
        self._stopped = False

    def show(self, snapshot: Snapshot) -> None:
        if not self._stopped and self._is_done(snapshot):
            self._stopped = True
            os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        pass


def config(savedir: Path, total_steps: int, **run: Any) -> TrainConfig:
    return TrainConfig(
        run=RunConfig(xpid="run", savedir=str(savedir), total_steps=total_steps, compile="off", progress="none", **run),
        rollout=RolloutConfig(unroll_length=10, batch_size=4),
        model=ModelConfig(model="mlp"),
        fleet=LocalFleetConfig(env="CartPole-v1", num_actors=4, num_servers=2),
    )


def stop_when(monkeypatch: pytest.MonkeyPatch, is_done: Callable[[Snapshot], bool]) -> None:
    monkeypatch.setattr(training_run, "make_progress", lambda *_: Watcher(is_done))


def saved_steps(savedir: Path) -> list[int]:
    return [
        torch.load(savedir / "run" / saved.file.name, weights_only=True)["step"]
        for saved in CheckpointStore(LocalStorage(savedir / "run"), keep=9).checkpoints()
    ]


def was_successful(savedir: Path) -> bool:
    successful: bool = json.loads((savedir / "run" / "meta.json").read_text())["successful"]
    return successful


def disk_full(store: CheckpointStore, state: object) -> Saved:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_last_checkpoint_that_is_lost_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointStore, "save", disk_full)
    assert train.train(config(tmp_path, 200)) == 1
    assert not was_successful(tmp_path)


MALFORMED: dict[str, Callable[[dict[str, Any]], object]] = {
    "step": lambda state: state.update(step=math.nan),
    "env_spec": lambda state: state.update(env_spec={}),
    "config": lambda state: state.update(config=[4]),
    "task_configs": lambda state: state.update(task_configs={"CartPole-v1": 4}),
    "learner.model": lambda state: state.update(learner={}),
    "learner.version": lambda state: state["learner"].update(version="1"),
    "learner": lambda state: state["learner"].update(optimizer={"state": 5}),
    "rng": lambda state: state.update(rng={"cpu": torch.zeros(3), "cuda": []}),
    "stats": lambda state: state["stats"].update(lengths=5),
}


def test_a_resume_from_a_malformed_checkpoint_fails_in_words_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert train.train(config(tmp_path, 200)) == 0
    (saved,) = CheckpointStore(LocalStorage(tmp_path / "run"), keep=9).checkpoints()
    path = tmp_path / "run" / saved.file.name
    whole = path.read_bytes()
    for name, change in MALFORMED.items():
        state = torch.load(path, weights_only=True)
        change(state)
        torch.save(state, path)
        malformed, meta = path.read_bytes(), (tmp_path / "run" / "meta.json").read_bytes()
        caplog.clear()
        assert train.train(config(tmp_path, 400)) == 1, name
        (error,) = (record for record in caplog.records if record.levelname == "ERROR")
        assert f"the run failed: checkpoint {path}: {name}: " in error.getMessage() and error.exc_info is None
        assert path.read_bytes() == malformed and (tmp_path / "run" / "meta.json").read_bytes() == meta
        path.write_bytes(whole)
    assert train.train(config(tmp_path, 400)) == 0


def test_a_start_that_fails_leaves_no_folder_and_not_the_latest(tmp_path: Path) -> None:
    wanted = config(tmp_path, 200)
    assert train.train(replace(wanted, fleet=replace(wanted.fleet, env="NoSuchGame-v0"))) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lag", [None, 1])
def test_a_killed_env_server_is_replaced_and_training_goes_on(
    lag: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = replace(config(tmp_path, 10**9), rollout=RolloutConfig(unroll_length=10, batch_size=2))
    wanted = replace(wanted, fleet=replace(wanted.fleet, lag=lag))
    others, killed = set(children(os.getpid(), ENV_SERVER)), list[psutil.Process]()
    returned_at: list[int] = []

    def kill_one_and_wait_for_its_return(snapshot: Snapshot) -> bool:
        if not killed and snapshot.streams == 2 and snapshot.step > 0:
            killed.extend(set(children(os.getpid(), ENV_SERVER)) - others)
            killed[0].kill()
        if snapshot.actor_restarts >= 1 and snapshot.streams == 2:
            returned_at.append(snapshot.step)
        return bool(returned_at) and snapshot.step > returned_at[0]

    stop_when(monkeypatch, kill_one_and_wait_for_its_return)
    assert train.train(wanted) == 0
    assert saved_steps(tmp_path)[0] > returned_at[0] > 0
    assert ("another run would not be the same" in caplog.text) == (lag is not None)


def test_an_error_in_inference_ends_the_run_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    num_calls = 0
    sample = ActionDistribution.sample

    def fail_late(*arguments: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        if num_calls > 200:
            raise RuntimeError("out of memory")
        return sample(*arguments)

    monkeypatch.setattr(ActionDistribution, "sample", fail_late)
    assert train.train(config(tmp_path, 10**9)) == 1
    assert saved_steps(tmp_path)[0] > 0
    assert "out of memory" in caplog.text


def test_a_learner_without_env_servers_says_so_and_stops_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(remote_actors, "HINT_INTERVAL_S", 0.0)
    handler = StoppingHandler()
    handler.addFilter(lambda record: record.getMessage().startswith("waiting for env-servers on 127.0.0.1:"))
    remote_actors.logger.addHandler(handler)
    try:
        run = RunConfig(xpid="run", savedir=str(tmp_path), progress="none")
        assert train.learn(LearnerConfig(run=run, pool=PoolConfig(address="127.0.0.1:0"))) == 0
    finally:
        remote_actors.logger.removeHandler(handler)
    assert saved_steps(tmp_path) == []
