"""Env-servers that share no code with ours keep the contract, learn, and live through their learner."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.client_library import BUILD_TIMEOUT_S, built_against, installed_client
from harness.processes.learner_process import LearnerProcess
from tests.integration.envserver_learner import ROOT

EXAMPLES = ROOT / "examples"
TIMEOUT_S = 240
INSTALL_TIMEOUT_S = 300
THRESHOLD = 0.8
"""Mean return of 100 games of Catch; a random player has about -0.6, a perfect one 1."""
OURS, THEIRS = "kubebeast_envserver.catch:Catch-v0", "Catch-v0"
LEARNER = ("--recipe=Catch", "--compile=off", "--seed=1", "--log-interval-s=1", "--checkpoint-interval-minutes=0.02")

pytestmark = pytest.mark.timeout(TIMEOUT_S + INSTALL_TIMEOUT_S + BUILD_TIMEOUT_S)

Command = Callable[[str], list[str]]
"""Of an env-server for a learner's address."""


@pytest.fixture(scope="module")
def node_catch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, beside what its lock has."""
    if shutil.which("npm") is None:
        pytest.skip("there is no Node.js")
    root = tmp_path_factory.mktemp("node")
    folder = root / "examples" / "node_catch"
    shutil.copytree(EXAMPLES / "node_catch", folder, ignore=shutil.ignore_patterns("node_modules"))
    (root / "protos").symlink_to(ROOT / "protos")
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=folder, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
    return folder / "env_server.js"


@pytest.fixture(scope="module")
def cpp_catch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("cpp")
    return built_against(installed_client("shared"), EXAMPLES / "cpp_catch", build) / "catch"


def of_python(address: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / "plain_env_server.py"), address]


@pytest.fixture(params=["python", "node", "cpp"])
def command(request: pytest.FixtureRequest) -> Command:
    if request.param == "python":
        return of_python
    program: Path = request.getfixturevalue(f"{request.param}_catch")
    words = [str(program)] if request.param == "cpp" else ["node", str(program)]
    return lambda address: [*words, address]


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_keeps_the_contract(command: Command) -> None:
    suite = [sys.executable, "-m", "kubebeast_conformance", "env-server", "--listen=127.0.0.1:0", "--steps=60"]
    process = subprocess.run(
        [*suite, "--", *command("{address}")], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    *results, counts = map(json.loads, process.stdout.splitlines())
    assert [result for result in results if result["outcome"] == "failed"] == []
    assert (process.returncode, counts["skipped"]) == (0, 6), process.stderr


@pytest.mark.slow
def test_all_learn_beside_ours_and_live_through_the_end_of_their_learner(
    tmp_path: Path, cpp_catch: Path, node_catch: Path
) -> None:
    with contextlib.ExitStack() as stack:
        learner = stack.enter_context(LearnerProcess(tmp_path, *LEARNER, warm=True))
        commands = [
            [*(sys.executable, "-m", "kubebeast_envserver", f"--env={OURS}"), f"--address={learner.address}"],
            of_python(learner.address),
            [str(cpp_catch), learner.address, "4"],
            ["node", str(node_catch), learner.address],
        ]
        env_servers = [stack.enter_context(running(command)) for command in commands]
        learner.wait_until(lambda values: values["streams"] == len(commands) and values["checkpoint_age_s"] is not None)
        learner.kill()
        learner.start()
        learner.wait_until(
            lambda values: (
                values["streams"] == len(commands)
                and values["process_episodes"] >= 1000
                and min(returns_of_tasks(learner).values()) >= THRESHOLD
            )
        )
        assert set(returns_of_tasks(learner)) == {OURS, THEIRS}
        assert len(learner.resumed_steps()) == 1
        for env_server in env_servers:
            env_server.terminate()
        assert [env_server.wait(TIMEOUT_S) for env_server in env_servers] == [0] * len(commands)
        assert learner.errors() == []


def returns_of_tasks(learner: LearnerProcess) -> dict[str, float]:
    """Means of the newest 100 episodes: of ours, and of the others together, who call the game the same."""
    pattern = r'kubebeast_task_episode_return_mean\{env_id="(.*?)"\} (\S+)'
    return {name: float(value) for name, value in re.findall(pattern, learner.scrape())}
