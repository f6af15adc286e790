"""Run folders read like TorchBeast's and go on where a resumed run stopped."""

import csv
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from kubebeast_learner.run_log import RunLog


@pytest.fixture(autouse=True)
def root_handlers() -> Iterator[None]:
    """Every log must take its handler away again."""
    before = list(logging.getLogger().handlers)
    yield
    assert logging.getLogger().handlers == before


def write(savedir: Path, *rows: dict[str, float | int | None], successful: bool = True) -> Path:
    with RunLog(savedir, "run", {"unroll_length": 20}) as log:
        for row in rows:
            log.log(row)
        log.successful = successful
    return log.folder


def read(folder: Path) -> list[dict[str, str | None]]:
    """logs.csv under the newest names of fields.csv, as TorchBeast's readers do it."""
    with open(folder / "fields.csv", newline="", encoding="utf-8") as file:
        names = list(csv.reader(file))[-1]
    with open(folder / "logs.csv", newline="", encoding="utf-8") as file:
        return list[dict[str, str | None]](csv.DictReader((line for line in file if not line.startswith("#")), names))


def test_rows_come_back_with_tick_and_time(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10, "total_loss": 0.5}, {"step": 20, "total_loss": None})
    first, second = read(folder)
    assert (first["_tick"], first["step"], first["total_loss"]) == ("0", "10", "0.5")
    assert (second["_tick"], second["step"], second["total_loss"]) == ("1", "20", "")
    assert float(second["_time"] or 0) >= float(first["_time"] or 0) > 0


def test_logs_start_with_a_comment_of_names(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10, "total_loss": 0.5})
    assert (folder / "logs.csv").read_text().splitlines()[0] == "# _tick,_time,step,total_loss"


def test_resumed_run_goes_on_at_the_next_tick(tmp_path: Path) -> None:
    write(tmp_path, {"step": 10}, {"step": 20})
    rows = read(write(tmp_path, {"step": 30}))
    assert [(row["_tick"], row["step"]) for row in rows] == [("0", "10"), ("1", "20"), ("2", "30")]


def test_new_names_are_appended_and_old_rows_keep_their_columns(tmp_path: Path) -> None:
    write(tmp_path, {"step": 10, "a": 1})
    folder = write(tmp_path, {"step": 20, "b": 2, "a": 3})
    assert (folder / "fields.csv").read_text().splitlines() == ["_tick,_time,step,a", "_tick,_time,step,a,b"]
    old, new = read(folder)
    assert (old["a"], old["b"]) == ("1", None)
    assert (new["a"], new["b"]) == ("3", "2")


def test_a_row_that_a_crash_tore_is_cut_off(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10}, {"step": 20})
    content = (folder / "logs.csv").read_text()
    (folder / "logs.csv").write_text(content[:-4])
    rows = read(write(tmp_path, {"step": 30}))
    assert [(row["_tick"], row["step"]) for row in rows] == [("0", "10"), ("1", "30")]


@pytest.mark.parametrize("successful", [True, False])
def test_meta_tells_arguments_dates_and_success(tmp_path: Path, successful: bool) -> None:
    meta = json.loads((write(tmp_path, successful=successful) / "meta.json").read_text())
    assert meta["successful"] is successful
    assert meta["xpid"] == "run" and meta["args"] == {"unroll_length": 20}
    assert meta["date_start"] <= meta["date_end"]


def test_a_run_that_was_killed_is_not_successful(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run", {}) as log:
        log.successful = True
        meta = json.loads((log.folder / "meta.json").read_text())
    assert meta["successful"] is False and meta["date_end"] is None


def test_meta_keeps_the_job_but_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_JWT", "hush-hush")
    monkeypatch.setenv("WANDB_API_KEY", "hush-hush")
    text = (write(tmp_path) / "meta.json").read_text()
    assert json.loads(text)["slurm"]["job_id"] == "4711"
    assert "hush-hush" not in text


def test_messages_land_in_out_log(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run", {}) as log:
        logging.getLogger("anything").warning("a thing happened")
    assert "a thing happened" in (log.folder / "out.log").read_text()


def test_latest_points_at_the_run_that_started_last(tmp_path: Path) -> None:
    for xpid in ("one", "two"):
        with RunLog(tmp_path, xpid, {}):
            pass
    assert (tmp_path / "latest").resolve() == (tmp_path / "two").resolve()


def test_tensorboard_gets_every_finite_number_at_its_step(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10, "total_loss": 0.5, "grad_norm": float("nan"), "sps": None})
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["total_loss"]
    (event,) = events.Scalars("total_loss")
    assert (event.step, event.value) == (10, 0.5)
