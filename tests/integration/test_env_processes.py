"""Processes that environments start end with the process that hosts them: after a failure, and at the end."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from harness.chaos.simulators import ENV_ID, WAYS, alive, started
from harness.processes.training_process import TIMEOUT_S, command, environment, run, training_command
from kubebeast_envserver.stream.exit_code import ExitCode
from tests.child_processes import SPAWNED, children
from tests.integration.envserver_learner import ROOT, learner, running

ways = pytest.mark.parametrize("way", WAYS)


def kwargs(folder: Path, way: str, exits_at: int = 0) -> str:
    return json.dumps({"folder": str(folder), "way": way, "exits_at": exits_at})


def wait_until(holds: Callable[[], bool], process: "subprocess.Popen[str] | psutil.Process") -> None:
    """Waits as long as the process runs; the test's own limit ends it."""
    while not holds():
        assert process.poll() is None if isinstance(process, subprocess.Popen) else process.is_running()


@contextmanager
def env_server(folder: Path, way: str, exits_at: int = 0) -> Iterator["tuple[subprocess.Popen[str], set[int]]"]:
    """Yields an env-server with an environment that plays, and the processes that the environment has started."""
    flags = ("--env", ENV_ID, "--envs-per-stream=1", "--env-kwargs", kwargs(folder, way, exits_at))
    with learner() as server, running(*flags, "--address", server.address) as process:
        server.next("observations")
        wait_until(lambda: bool(started(folder)), process)  # a daemon writes its file itself
        yield process, started(folder)
        process.kill()


def stream_of(process: "subprocess.Popen[str]", simulators: set[int]) -> psutil.Process:
    """Returns the stream's process of an env-server, which may have adopted forks of it."""
    (stream,) = (child for child in children(process.pid, SPAWNED) if child.pid not in simulators)
    return stream


@ways
def test_an_env_server_that_is_told_to_end_leaves_no_process(tmp_path: Path, way: str) -> None:
    with env_server(tmp_path, way) as (process, simulators):
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK
    assert simulators and not alive(tmp_path)


@ways
def test_a_stream_that_is_replaced_leaves_no_process(tmp_path: Path, way: str) -> None:
    with env_server(tmp_path, way) as (process, simulators):
        stream_of(process, simulators).kill()
        wait_until(lambda: bool(started(tmp_path) - simulators), process)
        assert not simulators & alive(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == ExitCode.OK
    assert not alive(tmp_path)


@pytest.mark.parametrize("way", ["ignores signals", "daemon", "fork"])
def test_streams_of_a_killed_supervisor_leave_no_process(tmp_path: Path, way: str) -> None:
    with env_server(tmp_path, way) as (process, simulators):
        stream = stream_of(process, simulators)
        process.kill()
        stream.wait(TIMEOUT_S)
        assert not alive(tmp_path)


@pytest.mark.parametrize("way", ["child", "daemon", "fork"])
def test_an_env_server_that_gives_up_leaves_no_process(tmp_path: Path, way: str) -> None:
    flags = ("--env", ENV_ID, "--envs-per-stream=1", "--env-kwargs", kwargs(tmp_path, way, exits_at=3))
    with learner() as server, running(*flags, "--max-failures=3", "--address", server.address) as process:
        assert process.wait(TIMEOUT_S) == ExitCode.FAILED
    assert len(started(tmp_path)) >= 3 and not alive(tmp_path)


def mono(savedir: Path, folder: Path, way: str, exits_at: int, *flags: str) -> list[str]:
    flags = (f"--env={ENV_ID}", "--recipe=none", "--model=mlp", f"--env-kwargs={kwargs(folder, way, exits_at)}", *flags)
    return training_command("mono", savedir, *flags)


@pytest.mark.parametrize("way", ["ignores signals", "variables of its own", "daemon", "forks over and over"])
def test_a_training_without_env_servers_leaves_no_process(tmp_path: Path, way: str) -> None:
    (folder := tmp_path / "simulators").mkdir()
    process = run(mono(tmp_path, folder, way, 0, "--total-steps=200"))
    assert process.returncode == 0, process.stderr
    assert started(folder) and not alive(folder)


@pytest.mark.parametrize("way", ["fork", "daemon"])
def test_an_actor_that_dies_is_replaced_although_its_fork_holds_its_pipe(tmp_path: Path, way: str) -> None:
    (folder := tmp_path / "simulators").mkdir()
    process = run(mono(tmp_path, folder, way, 150, "--total-steps=400", "--num-actor-processes=1", "--num-actors=1"))
    assert process.returncode == 0, process.stderr
    assert "restarting it" in process.stderr
    assert not alive(folder)


def test_a_killed_training_leaves_no_process(tmp_path: Path) -> None:
    (folder := tmp_path / "simulators").mkdir()
    words = mono(tmp_path, folder, "daemon", 0, "--total-steps=100000000")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        assert process.stdout is not None and process.stdout.readline()
        actors = children(process.pid, SPAWNED)
        process.kill()
    gone, left = psutil.wait_procs(actors, timeout=TIMEOUT_S)
    assert gone and not left and not alive(folder)


@pytest.mark.parametrize("way", ["fork", "daemon"])
def test_an_environment_that_takes_its_first_process_down_ends_the_run(tmp_path: Path, way: str) -> None:
    (folder := tmp_path / "simulators").mkdir()
    (tmp_path / "dies.py").write_text(
        "import os, gymnasium\n"
        "from harness.chaos.simulators import Simulators\n"
        "def make(**kwargs):\n    Simulators(**kwargs)\n    os._exit(7)\n"
        'gymnasium.register("Dies-v0", entry_point=make)\n'
    )
    words = mono(tmp_path, folder, way, 0, "--env=dies:Dies-v0")
    process = run(words, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert process.returncode == 1
    assert "ended with status 7" in process.stderr
    assert not alive(folder)


@ways
def test_a_command_that_plays_leaves_no_process(tmp_path: Path, way: str) -> None:
    process = run(command("check-env", ENV_ID, "--steps=20", f"--env-kwargs={kwargs(tmp_path, way)}"))
    assert process.returncode == 0, process.stderr
    assert started(tmp_path) and not alive(tmp_path)
