"""Env-servers of older gym and atari-py, in a virtual environment of their own, and today's play in the same run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, command, environment
from tests.integration.fresh_venv import INSTALL_TIMEOUT_S, ROOT, fresh_venv, pip_install

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(INSTALL_TIMEOUT_S + 300),
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="gym 0.21 cannot be built, and NumPy 1 is of Python's past"),
]

NUM_ENVS, MAX_STEPS = 4, 60
"""Environments and steps of each env-server."""
LEARNER = ["--model=mlp", "--recipe=none", "--unroll-length=10", "--batch-size=2", "--compile=off", "--progress=none"]


def install_legacy(folder: Path) -> Path:
    """Makes a virtual environment as in the guide, with gym 0.26 and atari-py."""
    venv = fresh_venv(folder)
    pins = (folder / "constraints.txt").read_text().splitlines(keepends=True)
    (folder / "legacy.txt").write_text("".join(line for line in pins if not line.startswith("numpy==")))
    names = ("./protos", "./services/common", "./services/envserver[legacy,legacy-atari]")
    pip_install(venv, "-c", "legacy.txt", *names, env={**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": "2"})
    return venv


def install_gym_21(venv: Path, folder: Path) -> None:
    """Installs it beside the other gym, for a process with the folder in its PYTHONPATH."""
    (venv.parent / "gym-0.21.txt").write_text("setuptools<66\nwheel<0.39\n")
    pip_install(
        venv, "--no-deps", "--target", folder, "gym==0.21.0", env={**os.environ, "PIP_CONSTRAINT": "gym-0.21.txt"}
    )


def env_server(python: Path | str, address: str, *flags: str, **variables: str) -> subprocess.Popen[bytes]:
    """Starts an env-server that leaves after its steps."""
    words = [python, "-m", "kubebeast_envserver", f"--address={address}", f"--envs-per-stream={NUM_ENVS}"]
    return subprocess.Popen([*words, f"--max-steps={MAX_STEPS}", *flags], env=environment(**variables))


def train_together(savedir: Path, servers: list[tuple[Path | str, list[str], dict[str, str]]]) -> None:
    """Runs a training that needs at least half of the steps of every env-server to finish."""
    total_steps = (len(servers) * MAX_STEPS - MAX_STEPS // 2) * NUM_ENVS
    flags = [f"--total-steps={total_steps}", f"--savedir={savedir}", "--xpid=run", "--address=127.0.0.1:0"]
    with warm_start.Process(command("learner", *flags, *LEARNER), env=environment()) as learner:
        address = next(match[1] for line in learner.stderr if (match := re.search(r"listening on ([\d.:]+)", line)))
        playing = [env_server(python, address, *words, **variables) for python, words, variables in servers]
        try:
            assert learner.wait(TIMEOUT_S) == 0
        finally:
            learner.kill()
            for server in playing:
                server.kill()
                server.wait()
    assert checkpoint_steps(savedir / "run")[-1] >= total_steps


def test_env_servers_of_older_gym_and_todays_feed_one_run(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test, as an installation and a compilation take most of the time."""
    venv, overlay = install_legacy(tmp_path), tmp_path / "gym-0.21"
    install_gym_21(venv, overlay)
    today, legacy = sys.executable, venv / "bin" / "python"
    pong, old_pong = "--env=PongNoFrameskip-v4", '--env-kwargs={"emulator": "atari_py"}'

    with subtests.test("CartPole of gymnasium, gym 0.26 and gym 0.21"):
        older = ["--env=gym/CartPole-v1"]
        train_together(
            tmp_path / "cartpole",
            [
                (today, ["--env=CartPole-v1"], {}),
                (legacy, older, {}),
                (legacy, older, {"PYTHONPATH": str(overlay)}),
            ],
        )
    with subtests.test("Pong of ale-py and atari-py"):
        train_together(tmp_path / "pong", [(today, [pong], {}), (legacy, [pong, old_pong], {})])
    with subtests.test("atari-py's games are those of ale-py"):
        subprocess.run([legacy, ROOT / "tests" / "integration" / "same_games.py"], check=True, timeout=TIMEOUT_S)
