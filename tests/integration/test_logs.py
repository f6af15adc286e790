"""The logs of a learner and of an env-server in pods are JSON lines that name their run and stream."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.processes.training_process import TIMEOUT_S, command, environment, training_command
from harness.processes.training_process import run as run_command
from tests.child_processes import SPAWNED, children
from tests.integration.envserver_learner import learner, running

LEARNER = [
    "--xpid=run",
    "--address=127.0.0.1:0",
    "--unroll-length=10",
    "--batch-size=4",
    "--model=mlp",
    "--compile=off",
]
ENV_SERVER = [sys.executable, "-m", "kubebeast_envserver", "--env=CartPole-v1", "--env-server-id=pod-7"]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
Entry = dict[str, Any]


@contextmanager
def started(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    for line in lines:
        entry = json.loads(line)
        assert TIME.fullmatch(entry["time"]) and entry["level"] in ("debug", "info", "warning", "error"), entry
        assert entry["logger"] and entry["process"] and entry["message"], entry
        yield entry


def until(lines: Iterator[Entry], is_it: Callable[[Entry], bool]) -> list[Entry]:
    """Returns the entries up to the first for which `is_it` holds, that one included."""
    seen: list[Entry] = []
    for entry in lines:
        seen.append(entry)
        if is_it(entry):
            return seen
    raise AssertionError(f"the log ended with {seen[-1:]}")


def says(text: str) -> Callable[[Entry], bool]:
    return lambda entry: text in entry["message"]


def test_learner_and_env_server_name_the_run_and_the_stream(tmp_path: Path) -> None:
    with started(command("learner", f"--savedir={tmp_path}", *LEARNER, "--log-interval-s=0.2")) as learner_process:
        assert learner_process.stderr is not None and learner_process.stdout is not None
        lines = entries(learner_process.stderr)
        log = until(lines, says("listening on"))
        address = log[-1]["message"].split()[-1]
        with started([*ENV_SERVER, f"--address={address}", "--num-streams=1", "--envs-per-stream=2"]) as env_server:
            log += until(lines, says("joined from"))
            progress = until(entries(learner_process.stdout), lambda entry: entry["step"] > 0)
            env_server.terminate()
            env_server_log = list(entries(env_server.communicate(timeout=TIMEOUT_S)[1].splitlines()))
        log += until(lines, says("left with"))
        learner_process.send_signal(signal.SIGTERM)
        # Not by communicate, which ignores data that the files have read ahead.
        log += lines
        progress += entries(learner_process.stdout)
        learner_process.wait(TIMEOUT_S)
    assert {entry["run_id"] for entry in log + progress} == {"run"}
    assert any(map(says("SIGTERM: ending with a checkpoint"), log))
    (joined,), (left,) = (list(filter(says(text), log)) for text in ("joined from", "left with"))
    (welcomed,) = filter(says("joined run run"), env_server_log)
    names = ("run_id", "env_server_id", "instance_id")
    assert {tuple(entry[name] for name in names) for entry in (joined, left, welcomed)} == {
        ("run", "pod-7", welcomed["instance_id"])
    }
    assert {entry["env_server_id"] for entry in env_server_log} == {"pod-7"}
    assert {entry["message"] for entry in progress} == {"progress"}
    assert "mean return of the last" in log[-1]["message"]


def test_the_supervisor_names_the_stream_whose_process_died() -> None:
    flags = ["--env=Mock", "--envs-per-stream=1", "--env-server-id=pod-7", "--max-failures=9"]
    with learner() as server, running(*flags, f"--address={server.address}") as process:
        assert process.stderr is not None
        lines = entries(process.stderr)
        welcomed = until(lines, says("joined run test"))[-1]
        children(process.pid, SPAWNED)[0].kill()
        told = until(lines, says("is replaced in"))[-1]
        again = until(lines, says("joined run test"))[-1]
    names = ("run_id", "env_server_id", "instance_id")
    assert [told[name] for name in names] == [welcomed[name] for name in names]
    assert again["instance_id"] != welcomed["instance_id"]
    assert told["level"] == "warning" and told["process"] == "MainProcess"


def test_mono_logs_json_and_its_output_is_nothing_else(tmp_path: Path) -> None:
    process = run_command(training_command("mono", tmp_path, "--total-steps=200", "--recipe=none", "--model=mlp"))
    log, output = list(entries(process.stderr.splitlines())), list(entries(process.stdout.splitlines()))
    assert process.returncode == 0
    assert {entry["run_id"] for entry in log + output} == {"run"}
    assert {entry["message"] for entry in output} == {"progress"}
    assert "mean return of the last" in log[-1]["message"]


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_the_level_is_that_of_the_terminal_and_out_log_stays_as_it_is(tmp_path: Path, level: str) -> None:
    flags = ("--total-steps=200", "--recipe=none", "--model=mlp", f"--log-level={level}", "--progress=none")
    process = run_command(training_command("mono", tmp_path, *flags))
    assert process.returncode == 0
    levels = {entry["level"] for entry in entries(process.stderr.splitlines())}
    assert "info" in levels if level == "debug" else not levels & {"debug", "info"}
    assert re.search(
        r"^\[INFO:\d+ kubebeast_learner\.training\.checkpoints\.saving .*\] saved ",
        (tmp_path / "run/out.log").read_text(),
        re.M,
    )


def test_text_stays_text_where_it_is_asked_for(tmp_path: Path) -> None:
    flags = ("--total-steps=200", "--recipe=none", "--model=mlp", "--log-format=text", "--progress=none")
    process = run_command(training_command("mono", tmp_path, *flags))
    assert process.returncode == 0
    assert re.search(r"^[\d-]+ [\d:,]+ INFO MainProcess saved ", process.stderr, re.M)
    assert "{" not in process.stdout and "\x1b" not in process.stderr


@pytest.mark.parametrize("name", ["mono", "train"])
def test_a_training_starts_with_three_lines(tmp_path: Path, name: str) -> None:
    flags = ("--env=CartPole-v1", "--total-steps=200", "--log-format=text", "--progress=none")
    process = run_command(training_command(name, tmp_path, *flags))
    assert process.returncode == 0
    lines = [re.sub(r"^[\d-]+ [\d:,]+ INFO MainProcess ", "", line) for line in process.stderr.splitlines()]
    starts = [line for line in lines if not re.search(" joined | left |^saved ", line)]
    assert [
        re.match(r"kubebeast \w+: settings|MLPTorso takes|training on cpu", line) is not None for line in starts
    ] == [True] * 3
