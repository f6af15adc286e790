"""Run folders have TorchBeast's format, and a resumed run continues them."""

import csv
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubebeast_learner.config import ConfigError
from kubebeast_runs.folder import folder_of
from kubebeast_runs.log import RunLog


@pytest.fixture(autouse=True)
def root_handlers() -> Iterator[None]:
    """Checks that every log removes its handler."""
    before = list(logging.getLogger().handlers)
    yield
    assert logging.getLogger().handlers == before


Row = dict[str, float | int | tuple[float, ...] | None]


def write(savedir: Path, *rows: Row, successful: bool = True) -> Path:
    with RunLog(savedir, "run") as log:
        log.record({"unroll_length": 20})
        for row in rows:
            log.log(row)
        log.successful = successful
    return log.folder


def read(folder: Path) -> list[dict[str, str | None]]:
    """Returns logs.csv under the newest names of fields.csv, as TorchBeast's readers do."""
    with open(folder / "fields.csv", newline="", encoding="utf-8") as file:
        names = list(csv.reader(file))[-1]
    with open(folder / "logs.csv", newline="", encoding="utf-8") as file:
        return list[dict[str, str | None]](csv.DictReader((line for line in file if not line.startswith("#")), names))


def read_by_header(folder: Path) -> dict[str, list[float]]:
    """Returns the columns of logs.csv as a plotting script reads them: a line "# a,b,c" names the columns below it."""
    columns: dict[str, list[float]] = {}
    names: list[str] = []
    with open(folder / "logs.csv", newline="", encoding="utf-8") as file:
        for fields in csv.reader(file):
            if fields[0].startswith("# "):
                names = [fields[0][2:], *fields[1:]]
                continue
            for name, field in zip(names, fields, strict=True):
                columns.setdefault(name, []).append(float(field))
    return columns


def test_a_run_counts_the_processes_that_were_killed_or_failed_and_no_others(tmp_path: Path) -> None:
    counts = []
    for successful in (True, False, False, True, True):
        with RunLog(tmp_path, "run") as log:
            log.record({})
            counts.append(log.num_crashes)
            log.successful = successful
    assert counts == [0, 0, 1, 2, 2]


def test_a_process_of_a_run_that_is_killed_before_it_begins_counts(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run") as log:
        log.record({"seed": 1})
        log.successful = True
    before = json.loads((tmp_path / "run" / "meta.json").read_text())
    with RunLog(tmp_path, "run"):
        killed = (tmp_path / "run" / "meta.json").read_text()
    assert json.loads((tmp_path / "run" / "meta.json").read_text()) == before, "its end in order changes nothing"

    (tmp_path / "run" / "meta.json").write_text(killed)
    with RunLog(tmp_path, "run") as log:
        assert log.num_crashes == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"successful": false, "num_crashes": "many"}'])
def test_a_meta_file_that_cannot_be_read_counts_as_a_new_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "meta.json").write_text(text)
    with RunLog(tmp_path, "run") as log:
        log.record({})
        assert log.num_crashes == 0


def test_a_plotting_script_reads_a_log_through_a_resume_and_a_growth(tmp_path: Path) -> None:
    write(tmp_path, {"step": 10, "mean_episode_return": 1.5}, {"step": 20, "mean_episode_return": 2.5})
    write(tmp_path, {"step": 30, "mean_episode_return": 3.5})
    folder = write(tmp_path, {"step": 40, "extra": 7, "mean_episode_return": 4.5})
    columns = read_by_header(folder)
    assert columns["step"] == [10, 20, 30, 40] and columns["mean_episode_return"] == [1.5, 2.5, 3.5, 4.5]
    assert columns["_tick"] == [0, 1, 2, 3] and columns["extra"] == [7]


def test_returns_of_episodes_are_written_as_polybeast_writes_them(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 1, "episode_returns": (1.0, 21.0)}, {"step": 2, "episode_returns": ()})
    assert [row["episode_returns"] for row in read(folder)] == ["(1.0, 21.0)", "()"]
    assert '"(1.0, 21.0)"' in (folder / "logs.csv").read_text()


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


def test_names_that_a_crash_kept_from_the_log_are_written_again(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 10})
    with open(folder / "fields.csv", "a", encoding="utf-8") as file:
        file.write("_tick,_time,step,extra\n")
    write(tmp_path, {"step": 20, "extra": 7})
    assert read_by_header(folder)["extra"] == [7]


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


def test_a_run_that_ends_with_an_error_is_not_successful(tmp_path: Path) -> None:
    def fail_late() -> None:
        with RunLog(tmp_path, "run") as log:
            log.record({})
            log.successful = True
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_late()
    meta = json.loads((tmp_path / "run" / "meta.json").read_text())
    assert meta["successful"] is False and meta["date_end"] is not None


def test_a_run_that_was_killed_is_not_successful(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run") as log:
        log.record({})
        log.successful = True
        meta = json.loads((log.folder / "meta.json").read_text())
    assert meta["successful"] is False and meta["date_end"] is None


def test_a_run_keeps_its_job_but_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_JWT", "hush-hush")
    monkeypatch.setenv("WANDB_API_KEY", "hush-hush")
    folder = write(tmp_path, {"step": 1})
    assert json.loads((folder / "meta.json").read_text())["slurm"]["job_id"] == "4711"
    assert [path for path in folder.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()] == []


def test_messages_land_in_out_log(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run") as log:
        log.record({})
        logging.getLogger("anything").warning("a thing happened")
    assert "a thing happened" in (log.folder / "out.log").read_text()


def test_latest_names_the_run_that_began_last(tmp_path: Path) -> None:
    for xpid in ("one", "two"):
        with RunLog(tmp_path, xpid) as log:
            log.record({})
    with RunLog(tmp_path, "never"):
        pass
    assert (tmp_path / "latest").read_text() == "two\n"
    assert folder_of(str(tmp_path), "latest") == tmp_path / "two"


def test_latest_takes_the_place_of_the_link_of_older_versions_which_is_followed_until_then(tmp_path: Path) -> None:
    write(tmp_path, {"step": 1})
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to("run")
    assert folder_of(str(tmp_path), "latest").resolve() == tmp_path / "run"
    with RunLog(tmp_path, "two") as log:
        log.record({})
    assert folder_of(str(tmp_path), "latest") == tmp_path / "two" and (tmp_path / "run" / "meta.json").is_file()


@pytest.mark.parametrize("content", ["", "..", "../other", "latest", "a/b"])
def test_latest_names_nothing_outside_of_savedir(tmp_path: Path, content: str) -> None:
    (tmp_path / "latest").write_text(content)
    assert folder_of(str(tmp_path), "latest") == tmp_path / "latest"


@pytest.mark.parametrize("savedir", ["", "a/b"])
def test_a_new_run_that_never_begins_leaves_nothing(
    tmp_path: Path, savedir: str, caplog: pytest.LogCaptureFixture
) -> None:
    with RunLog(tmp_path / savedir, "run") as log:
        logging.getLogger("anything").warning("it fails")
        (log.folder / "env-servers.log").write_text("the reason")
    assert list(tmp_path.iterdir()) == []
    assert "env-servers.log ended so:\nthe reason" in caplog.text


def test_what_others_put_into_the_folder_of_a_run_that_never_begins_stays(tmp_path: Path) -> None:
    with RunLog(tmp_path, "run") as log:
        (log.folder / "notes.txt").write_text("mine")
    assert [path.name for path in log.folder.iterdir()] == ["notes.txt"]


def test_a_run_that_does_not_start_leaves_the_one_before_as_it_was(tmp_path: Path) -> None:
    folder = write(tmp_path, {"step": 1})
    with RunLog(tmp_path, "other") as log:
        log.record({})
    before = {name: (folder / name).read_text() for name in ("meta.json", "config.yaml")}
    with RunLog(tmp_path, "run"):
        pass
    assert {name: (folder / name).read_text() for name in before} == before
    assert folder_of(str(tmp_path), "latest") == tmp_path / "other"


HOLDER = """
import sys
from pathlib import Path
from kubebeast_runs.log import RunLog
with RunLog(Path(sys.argv[1]), "run") as log:
    log.record({})
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Starts another process that trains the run."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "holds\n"
        yield process
        process.kill()


def test_a_second_process_of_the_same_name_is_refused(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    before = (tmp_path / "run" / "meta.json").read_text()
    with pytest.raises(ConfigError, match=rf"xpid = 'run': process {holder.pid} on .* trains this run"):
        RunLog(tmp_path, "run")
    assert (tmp_path / "run" / "meta.json").read_text() == before


def test_a_killed_process_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    assert write(tmp_path, {"step": 1}).name == "run"


@pytest.mark.parametrize("name", ["logs.csv", "fields.csv"])
def test_a_damaged_byte_stops_no_resume(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, {"step": 10}, {"step": 20}) / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"step", b"s\xffep").replace(b",20", b",2\xff"))
    write(tmp_path, {"step": 30})
    ticks = [line.split(b",")[0] for line in (tmp_path / "run" / "logs.csv").read_bytes().splitlines()]
    assert [tick for tick in ticks if not tick.startswith(b"#")] == [b"0", b"1", b"2"]
