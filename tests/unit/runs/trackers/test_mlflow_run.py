"""Settings and facts of a run reach MLflow's own store, within its limits, and the same run goes on."""

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubebeast_runs.trackers.services.mlflow_run import MAX_TEXT, MlflowOptions
from kubebeast_runs.trackers.services.service_tracker import ServiceTracker

META: dict[str, Any] = {
    "xpid": "pong",
    "args": {
        "learning_rate": 0.1,
        "env_kwargs": '{"a": 1}',
        "hidden_sizes": [64, 64],
        "long": "x" * 10_000,
        "none": None,
    },
    "versions": {"torch": "2.13"},
    "hardware": {"cores": 2, "gpus": []},
    "git": {"commit": "abc", "is_dirty": False},
    "slurm": {},
    "recipe": {"name": "atari", "settings": {}},
    "num_crashes": 0,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pong").mkdir()
    return tmp_path / "pong"


def live(folder: Path, meta: Mapping[str, Any], step: int, *, successful: bool) -> None:
    """Tracks one process of the run, with one row."""
    tracker = ServiceTracker("mlflow", MlflowOptions(timeout_s=300), folder)
    try:
        tracker.begin(meta)
        tracker.log(step, {"info/won (%)": 50.0, "sps": 10.0, "grad_norm": float("inf")})
    finally:
        tracker.end(successful=successful)


def select(folder: Path, columns: str, table: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(folder.parent / "mlflow.db")) as store:
        return store.execute(f"SELECT {columns} FROM {table}").fetchall()


def test_a_run_of_two_processes_is_one_run_of_mlflow(folder: Path) -> None:
    live(folder, META, 80, successful=False)
    assert select(folder, "name, status", "runs") == [("pong", "FAILED")]
    live(folder, {**META, "args": {**META["args"], "learning_rate": 0.2}, "num_crashes": 1}, 40, successful=True)
    assert select(folder, "name, status", "runs") == [("pong", "FINISHED")]

    rows = sorted(select(folder, "key, value, step", "metrics"))
    assert rows == [
        (name, value, step) for name, value in (("charts/sps", 10), ("info/won ___", 50)) for step in (40, 80)
    ]
    params = dict(select(folder, "key, value", "params"))
    assert params == {
        "learning_rate": "0.1",
        "env_kwargs": '{"a": 1}',
        "hidden_sizes": "[64, 64]",
        "long": "x" * MAX_TEXT,
        "none": "null",
    }
    tags = dict(select(folder, "key, value", "tags"))
    assert tags["changed.learning_rate"] == "0.2" and sum(name.startswith("changed.") for name in tags) == 1
    facts = ("versions.torch", "hardware.cores", "git.commit", "mlflow.source.git.commit", "recipe", "num_crashes")
    assert [tags[name] for name in facts] == ["2.13", "2", "abc", "abc", "atari", "1"]
    assert "`charts/mean_episode_return`" in tags["mlflow.note.content"]
