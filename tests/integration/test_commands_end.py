"""Commands that play end when they are done, even if environments leave threads, and find their files."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from harness.processes.training_process import command, run, training_command
from kubebeast_learner.config import ModelConfig
from tests.unit.learner.play.playing import write_run

LEAVES = """
import atexit, multiprocessing, os, signal, sys, threading
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Leaves(CartPoleEnv):
    def __init__(self, render_mode="rgb_array", moves=""):
        super().__init__(render_mode="rgb_array")
        threading.Thread(target=threading.Event().wait).start()
        multiprocessing.get_context("fork").Process(target=signal.pause).start()
        atexit.register(print, "the hook has run", file=sys.stderr)
        if moves:
            os.chdir(moves)

    def render(self):
        return __import__("numpy").zeros((8, 8, 3), "uint8")

    def close(self):
        print("closed", file=sys.stderr)

gymnasium.register("Leaves-v0", entry_point=Leaves, max_episode_steps=10)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the module of the environment and a run."""
    (tmp_path / "leaves.py").write_text(LEAVES)
    write_run(tmp_path / "logs" / "run", "CartPole-v1", ModelConfig(model="mlp"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    yield tmp_path
    sys.modules.pop("leaves", None)


PLAY = ["--savedir=logs", "--xpid=run", "--env=leaves:Leaves-v0"]
COMMANDS = {
    "check-env": ["leaves:Leaves-v0", "--steps=20", "--json"],
    "eval": [*PLAY, "--episodes=2", "--json"],
    "render": [*PLAY, "--episodes=1", "--out=film.gif"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_although_an_environment_leaves_a_thread_and_a_process(folder: Path, name: str) -> None:
    process = run(command(name, *COMMANDS[name]))
    assert process.returncode == 0, process.stderr
    assert "the hook has run" in process.stderr and "closed" in process.stderr
    if name == "render":
        assert str(folder / "film.gif") in process.stdout and (folder / "film.gif").stat().st_size > 0
    else:
        assert json.loads(process.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_environment_may_change_the_working_directory(folder: Path, name: str) -> None:
    process = run(command(name, *COMMANDS[name], f"--env-kwargs={json.dumps({'moves': '/'})}"))
    assert process.returncode == 0, process.stderr
    assert name != "render" or (folder / "film.gif").exists()


def test_an_export_ends_although_a_model_leaves_a_thread(folder: Path) -> None:
    thread = "threading.Thread(target=threading.Event().wait).start()"
    words = ["--savedir=logs", "--xpid=run", "--format=torchscript", "--out=model.pt"]
    program = f"import threading; {thread}; from kubebeast_common.cli.console import main; main()"
    process = run([sys.executable, "-c", program, "export", *words])
    assert process.returncode == 0, process.stderr
    assert (folder / "model.pt").exists()


def test_a_training_ends_although_environments_leave_threads(folder: Path) -> None:
    words = training_command(
        "mono", folder, "--env=leaves:Leaves-v0", "--recipe=none", "--model=mlp", "--total-steps=200"
    )
    process = run(words)
    assert process.returncode == 0, process.stderr
    log = (folder / "run" / "actors.log").read_text()
    assert log.count("the hook has run") >= 3  # two actors, and one made to read its spaces


@pytest.mark.parametrize("setting", ["token_file", "tls_ca"])
def test_files_of_an_env_server_are_found_after_its_environment_moved(folder: Path, setting: str) -> None:
    """They are read again for each handshake."""
    program = (
        "import json, sys\n"
        "from kubebeast_envserver.config import parse\n"
        "config = parse(sys.argv[1:])\n"
        f"print(json.dumps(config.{setting}))\n"
    )
    (folder / "file").write_text("token")
    process = run([sys.executable, "-c", program, "--env=Mock", f"--{setting.replace('_', '-')}=file"])
    assert json.loads(process.stdout) == str(folder / "file")
