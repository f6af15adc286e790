"""`kubebeast eval` evaluates the trained environment, wherever it ran and whichever process had its settings."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, command, environment, run, training_command

KWARGS = {"sutton_barto_reward": False}
WRAPPER = "gymnasium.wrappers:FlattenObservation"
TIME_LIMIT = 5
"""Shorter than CartPole's fall under any policy: every episode of an environment with it has so many decisions."""
MAKING = [f"--env-kwargs={json.dumps(KWARGS)}", f"--wrappers={WRAPPER}", f"--time-limit={TIME_LIMIT}"]
FLAGS = ["--total-steps=200", "--model=mlp", "--recipe=none"]
ENV_SERVER = [sys.executable, "-m", "kubebeast_envserver", "--num-streams=1", "--envs-per-stream=4"]


def evaluate(savedir: Path, *flags: str) -> dict[str, Any]:
    done = run(command("eval", f"--savedir={savedir}", "--xpid=run", "--episodes=2", "--json", *flags))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@contextlib.contextmanager
def learner(savedir: Path, *flags: str) -> Iterator[tuple[warm_start.Process, str]]:
    """Yields a process of `kubebeast learner` with its log as output, and its listening address."""
    words = command("learner", f"--savedir={savedir}", "--xpid=run", "--address=127.0.0.1:0", *FLAGS, *flags)
    words += ["--unroll-length=10", "--batch-size=2", "--compile=off", "--progress=none", "--log-format=text"]
    with warm_start.Process(words, env=environment()) as process:
        try:
            yield process, wait_for(process, r"listening on (\S+)")
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str] | warm_start.Process, pattern: str) -> str:
    """Returns the first group of the next line of its log with the pattern."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if match := re.search(pattern, line):
            return match[1]
    raise AssertionError(f"no {pattern} in\n{''.join(lines)}")


@contextlib.contextmanager
def env_server(address: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    words = [*ENV_SERVER, f"--address={address}", *flags]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.parametrize("name", ["train", "mono"])
def test_one_machine(name: str, tmp_path: Path) -> None:
    done = run(training_command(name, tmp_path, *FLAGS, *MAKING))
    assert done.returncode == 0, done.stderr
    result = evaluate(tmp_path)
    assert [episode["length"] for episode in result["episodes"]] == [TIME_LIMIT] * 2
    assert (result["env_kwargs"], result["wrappers"], result["notes"]) == (KWARGS, [WRAPPER], [])
    made = {"preset": "none", "kwargs": KWARGS, "wrappers": [WRAPPER], "time_limit": TIME_LIMIT}
    meta = json.loads((tmp_path / "run" / "meta.json").read_text())
    assert meta["environment"] == {"env": "CartPole-v1", **made}


def test_env_servers_elsewhere_tell_the_learner(tmp_path: Path) -> None:
    with (
        learner(tmp_path) as (process, address),
        env_server(address, "--env=CartPole-v1", *MAKING),
    ):
        assert process.wait(TIMEOUT_S) == 0
    refused = run(command("eval", f"--savedir={tmp_path}", "--xpid=run"))
    assert refused.returncode == 2 and f"--wrappers {WRAPPER}: add that flag, or --wrappers train" in refused.stderr
    result = evaluate(tmp_path, "--wrappers=train")
    assert [episode["length"] for episode in result["episodes"]] == [TIME_LIMIT] * 2
    assert (result["env"], result["env_kwargs"], result["notes"]) == ("CartPole-v1", KWARGS, [])
    other = evaluate(tmp_path, "--env-kwargs={}", "--wrappers=[]", "--time-limit=0")
    assert min(episode["length"] for episode in other["episodes"]) > TIME_LIMIT
    making = f"kwargs {json.dumps(KWARGS)}, wrappers {WRAPPER}, time limit {TIME_LIMIT}"
    assert other["notes"] == [f"trained on CartPole-v1 with preset none, {making}"]


def test_a_group_that_comes_first_does_not_decide_for_the_others(tmp_path: Path) -> None:
    with learner(tmp_path, "--env=CartPole-v1") as (process, address), env_server(address, "--env=Acrobot-v1") as early:
        refused = wait_for(process, r"refused: (UNAVAILABLE: the run waits for .*)")
        assert refused == "UNAVAILABLE: the run waits for its first env-server of CartPole-v1, this one has Acrobot-v1"
        assert early.poll() is None, "it tries again"
        with env_server(address, "--env=CartPole-v1"):
            assert process.wait(TIMEOUT_S) == 0
    assert evaluate(tmp_path)["env"] == "CartPole-v1"
