"""Env-servers that share no code with ours keep the contract, play the same game, and outlive their learner."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import kubebeast_native as native
from harness.client_library import BUILD_TIMEOUT_S, built_against, installed_client
from harness.processes.learner_process import LearnerProcess
from kubebeast_envserver.catch import COLUMNS, ROWS, Catch
from tests.integration.envserver_learner import ROOT
from tests.integration.playing_pool import PlayingPool

EXAMPLES = ROOT / "examples"
TIMEOUT_S = 300.0
NUM_SKIPPED = {"python": 11, "cpp": 7, "node": 11}
"""Checks that do not apply; those of options of episodes only to the client library."""
INSTALL_TIMEOUT_S = 300
OURS, THEIRS = "kubebeast_envserver.catch:Catch-v0", "Catch-v0"
LEARNER = ("--recipe=Catch", "--compile=off", "--seed=1", "--log-interval-s=1", "--checkpoint-interval-minutes=0.02")

CATCH = native.EnvSpec(
    THEIRS,
    observation=[native.LeafSpec("", "float32", (ROWS, COLUMNS))],
    action=[native.LeafSpec("", "int64", (), num_categories=3)],
)

pytestmark = pytest.mark.timeout(TIMEOUT_S + INSTALL_TIMEOUT_S + BUILD_TIMEOUT_S)

Command = Callable[[str], list[str]]
"""Makes the command line of an env-server for a learner's address."""


@pytest.fixture(scope="module")
def node_catch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, installed with the packages of its lock file."""
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


def test_it_keeps_the_contract(command: Command, request: pytest.FixtureRequest) -> None:
    suite = [sys.executable, "-m", "kubebeast_conformance", "env-server", "--listen=127.0.0.1:0", "--steps=60"]
    process = subprocess.run(
        [*suite, "--", *command("{address}")], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    *results, counts = map(json.loads, process.stdout.splitlines())
    assert [result for result in results if result["outcome"] == "failed"] == []
    num_skipped = NUM_SKIPPED[request.node.callspec.params["command"]]
    assert (process.returncode, counts["skipped"]) == (0, num_skipped), process.stderr


def test_it_plays_our_game(command: Command) -> None:
    ends: Counter[float] = Counter()
    with PlayingPool(CATCH) as pool, running(command(pool.address)):
        for unroll in pool.unrolls(catch_every_other):
            for t in np.flatnonzero(unroll.valid[:, 0]):
                board, after = unroll.observation[0][t : t + 2, 0]
                if unroll.is_first[t, 0]:
                    assert (places(board)[0][0], places(board)[1]) == (0, COLUMNS // 2)
                expected, reward, is_over = our_step(board, int(unroll.actions[0][t, 0]))
                np.testing.assert_array_equal(after, expected)
                assert (unroll.rewards[t + 1, 0], unroll.terminated[t + 1, 0]) == (reward, is_over)
                assert not unroll.truncated[t + 1, 0]
                ends.update([reward] * is_over)
            if ends.total() >= 20 and len(ends) == 2:
                break


@pytest.mark.slow
def test_all_train_beside_ours_and_live_through_the_end_of_their_learner(
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
                and values["process_updates"] > 0
                and [episodes > 0 for episodes in episodes_of_streams(learner)] == [True] * len(commands)
                and tasks(learner) == {OURS, THEIRS}
            )
        )
        assert len(learner.resumed_steps()) == 1
        for env_server in env_servers:
            env_server.terminate()
        assert [env_server.wait(TIMEOUT_S) for env_server in env_servers] == [0] * len(commands)
        assert learner.errors() == []


def places(board: NDArray[np.generic]) -> tuple[tuple[int, int], int]:
    """Returns row and column of the ball, and the paddle's column, before the ball has landed."""
    (ball,) = np.argwhere(board[:-1])
    (paddle,) = np.flatnonzero(board[-1])
    return (int(ball[0]), int(ball[1])), int(paddle)


def catch_every_other(batch: native.InferenceBatch) -> NDArray[np.int64]:
    """Follows the ball with the paddle in even columns, and avoids it in others. Takes any action if the game is
    over.
    """
    actions = []
    for board, is_over in zip(batch.observation[0], batch.terminated, strict=True):
        (_, ball), paddle = ((0, 0), 0) if is_over else places(board)
        actions.append(1 + np.sign(ball - paddle) if ball % 2 == 0 else 0 if ball > paddle else 2)
    return np.array(actions, np.int64)


def our_step(board: NDArray[np.generic], action: int) -> tuple[NDArray[np.float32], float, bool]:
    """Returns our game's observation after a step from that board, its reward, and True if it is over."""
    game = Catch()
    game.reset()
    (game._ball_row, game._ball_column), game._paddle = places(board)
    after, reward, is_over, _, _ = game.step(np.int64(action))
    return after, reward, is_over


def episodes_of_streams(learner: LearnerProcess) -> list[int]:
    with urllib.request.urlopen(f"http://{learner.http_address}/streams", timeout=TIMEOUT_S) as response:
        return [stream["episodes"] for stream in json.load(response)["streams"]]


def tasks(learner: LearnerProcess) -> set[str]:
    """Returns the tasks with ended episodes: ours, and that of the others together, which use one name for the game."""
    return set(re.findall(r'kubebeast_task_episode_return_mean\{env_id="(.*?)"\}', learner.scrape()))
