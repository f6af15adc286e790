"""Trackers of services receive the numbers of logs.csv in every life of a run, and cost the training nothing."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from harness.ports import free_port
from harness.processes.rank_training import EnvServer, Ranks
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, environment, rows, run, training_command
from kubebeast_runs.files.table_file import TableFile
from kubebeast_runs.log_table import LogTable, read_log
from kubebeast_runs.trackers.services import NAMES
from kubebeast_runs.trackers.tags import tag_of
from tests.child_processes import children
from tests.integration.tracked_rows import Row, wandb_records

pytestmark = pytest.mark.slow

ENDLESS = "--total-steps=100000000"
SETTINGS = ("WANDB_API_KEY", "WANDB_MODE", "MLFLOW_TRACKING_URI", "TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")


@pytest.fixture(autouse=True)
def no_services_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))


def tracking(*names: str, **options: Any) -> list[str]:
    """Returns the flags of trackers with the same options, and with local stores."""
    common = {"timeout_s": TIMEOUT_S, **options}
    given = {name: {**common, **({"mode": "offline"} if name == "wandb" else {})} for name in names}
    return ["--tracker", *names, f"--tracker-options={json.dumps(given)}"]


def tracked(tracker: str, savedir: Path) -> list[Row]:
    """Returns the rows in the store of a tracker."""
    words = [sys.executable, "-m", "tests.integration.tracked_rows", tracker, str(savedir)]
    output = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S).stdout
    return [(step, numbers) for step, numbers in map(json.loads, output.splitlines())]


def as_table(found: list[Row], folder: Path) -> LogTable:
    """Returns such rows without those that were undone, by the reader of logs.csv."""
    folder.mkdir()
    table = TableFile(folder / "logs.csv", folder / "fields.csv")
    for step, numbers in found:
        elapsed_s = {"elapsed_s": numbers["run/elapsed_s"]}
        table.append({"step": step, **elapsed_s, **numbers})
    table.close()
    return read_log(folder)


def require_the_same_numbers(savedir: Path) -> None:
    """Requires the numbers of logs.csv of all trackers; the events of TensorBoard have float32."""
    log = read_log(savedir / "run")
    columns = {name: values for name in log.columns if (values := log.column(name)) and not name.startswith("_")}
    assert len(log.steps) > 2 and len(columns) > 20
    for tracker in (*NAMES, "tensorboard"):
        found = as_table(tracked(tracker, savedir), savedir / f"rows of {tracker}")
        assert list(found.steps) == list(log.steps), tracker
        tolerance = 1e-6 if tracker == "tensorboard" else 0.0
        for name, values in columns.items():
            np.testing.assert_allclose(
                found.columns[tag_of(name)], values, rtol=tolerance, err_msg=f"{tracker}: {name}"
            )


def mlflow_runs(savedir: Path) -> list[tuple[str, str]]:
    """Returns id and status of the runs in MLflow's store."""
    with contextlib.closing(sqlite3.connect(savedir / "mlflow.db")) as store:
        return store.execute("SELECT run_uuid, status FROM runs").fetchall()


def newest_step(savedir: Path) -> int:
    """Returns the largest step in MLflow's store, 0 if there is none."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(savedir / "mlflow.db")) as store:
        return store.execute("SELECT max(step) FROM metrics").fetchone()[0] or 0
    return 0


@contextlib.contextmanager
def started(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Yields a learner in a process group of its own, as a shell starts it."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), process_group=0
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_message(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError("".join(seen[-30:]))


def clients_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Returns the processes of a learner's trackers, with that of W&B itself."""
    hosts = children(process.pid, "kubebeast_runs.trackers.services.host")
    clients = [*hosts, *(child for host in hosts for child in host.children(recursive=True))]
    assert len(hosts) == len(NAMES) and len(clients) > len(hosts)
    return clients


def wait_for_trackers(process: "subprocess.Popen[str]", savedir: Path, step: int = 0) -> None:
    """Blocks until every tracker has begun, and MLflow has a row after `step`."""
    while (
        not all((savedir / "run" / f"tracker-{name}.json").exists() for name in NAMES) or newest_step(savedir) <= step
    ):
        wait_for_message(process, '"progress"')


def test_a_run_goes_on_in_every_service_after_its_end_and_after_a_kill(tmp_path: Path) -> None:
    folder, flags = tmp_path / "run", tracking(*NAMES, checkpoints=True)

    def train_to(total_steps: int) -> None:
        trained = run(training_command("mono", tmp_path, f"--total-steps={total_steps}", *flags))
        assert trained.returncode == 0, trained.stderr
        assert all(line.startswith("{") for line in trained.stdout.splitlines()), "output of a client"

    train_to(1500)
    ((first, status),) = mlflow_runs(tmp_path)
    assert status == "FINISHED"
    (saved,) = checkpoint_steps(folder)

    with started(training_command("mono", tmp_path, ENDLESS, *flags)) as process:
        wait_for_trackers(process, tmp_path, saved + 500)
        clients = clients_of(process)
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)
        _, alive = psutil.wait_procs(clients, timeout=TIMEOUT_S)
    assert alive == []
    assert mlflow_runs(tmp_path) == [(first, "FAILED")]

    train_to(3000)
    assert mlflow_runs(tmp_path) == [(first, "FINISHED")]
    require_the_same_numbers(tmp_path)
    records = list(wandb_records(folder))
    assert len({record.run.run_id for record in records if record.HasField("run")}) == 1
    assert (
        len(list((folder / "wandb").glob("offline-run-*"))) == sum(record.HasField("exit") for record in records) == 3
    )
    axes = {record.metric.glob_name: record.metric.step_metric for record in records if record.HasField("metric")}
    assert axes["*"] == "step"
    uploads = [set(record.artifact.aliases) for record in records if record.HasField("artifact")]
    assert uploads == [{f"step-{step}", "latest"} for step in checkpoint_steps(folder)] and len(uploads) == 2
    weights = (tmp_path / "mlartifacts").glob("*/artifacts/checkpoints/step-*/weights.safetensors")
    assert {path.parent.name for path in weights} == {f"step-{step:012d}" for step in checkpoint_steps(folder)}


def test_of_two_ranks_the_first_has_trackers(tmp_path: Path) -> None:
    with (
        Ranks(tmp_path, 2, "--total-steps=3000", *tracking(*NAMES)) as ranks,
        EnvServer(ranks.port),
        EnvServer(ranks.port + 1),
    ):
        assert ranks.process.wait(TIMEOUT_S) == 0, ranks.text()
    assert len(mlflow_runs(tmp_path)) == 1
    assert len(list((tmp_path / "run" / "wandb").glob("offline-run-*"))) == 1
    require_the_same_numbers(tmp_path)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_a_run_with_trackers_and_no_process_stays(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with started(training_command("mono", tmp_path, ENDLESS, *tracking(*NAMES))) as process:
        wait_for_trackers(process, tmp_path)
        clients = clients_of(process)
        os.killpg(process.pid, number)  # as a terminal does for Ctrl-C
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == status
        assert [client for client in clients if client.is_running()] == []
    assert [status for _, status in mlflow_runs(tmp_path)] == ["FINISHED"]
    require_the_same_numbers(tmp_path)


def numbers_of(savedir: Path) -> list[tuple[str, str, str]]:
    """Returns the repeatable numbers of each row."""
    return [(row["step"], row["total_loss"], row["mean_episode_return"]) for row in rows(savedir / "run")]


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    yield free_port()


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """Yields the port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("port_of_server", [closed_port, silent_port])
def test_a_server_that_is_down_costs_no_step(
    tmp_path: Path, port_of_server: Callable[[], AbstractContextManager[int]]
) -> None:
    repeatable = ["--total-steps=3000", "--lag=1"]
    alone = run(training_command("mono", tmp_path / "alone", *repeatable))
    assert alone.returncode == 0, alone.stderr
    with port_of_server() as port:
        options = {"mlflow": {"tracking_uri": f"http://127.0.0.1:{port}", "timeout_s": 1}}
        flags = ["--tracker=mlflow", f"--tracker-options={json.dumps(options)}"]
        trained = run(training_command("mono", tmp_path / "down", *repeatable, *flags))
    assert trained.returncode == 0, trained.stderr
    assert numbers_of(tmp_path / "down") == numbers_of(tmp_path / "alone")
    log = (tmp_path / "down" / "run" / "out.log").read_text()
    assert log.count("mlflow is not written: ") == 1
    assert re.search(r"failed writes until the end of the run: [0-9]+ of mlflow", log)
