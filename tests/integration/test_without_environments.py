"""A learner's machine needs neither gymnasium nor the env-server's package; commands that do report it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, environment, run

WITHOUT_ENVIRONMENTS = """
import sys
for name in ("gymnasium", "kubebeast_envserver"):
    sys.modules[name] = None  # an import of it raises
from kubebeast_common.cli.main import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
LEARNER = ["learner", "--address=127.0.0.1:0", "--recipe=torchbeast", "--model=mlp", "--unroll-length=10"]
LEARNER += ["--batch-size=4", "--compile=off"]
ENV_SERVER = [sys.executable, "-m", "kubebeast_envserver", "--env=CartPole-v1", "--envs-per-stream=4"]


@pytest.fixture
def kubebeast(tmp_path: Path) -> list[str]:
    """Returns the command line on a machine without environments."""
    script = tmp_path / "kubebeast.py"
    script.write_text(WITHOUT_ENVIRONMENTS)
    return [sys.executable, str(script)]


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_learner_trains_on_env_servers_elsewhere_and_its_run_is_looked_at(
    kubebeast: list[str], tmp_path: Path
) -> None:
    flags = [*LEARNER, f"--savedir={tmp_path}", "--xpid=run", "--total-steps=400", "--log-format=text"]
    with started(*kubebeast, *flags, "--progress=none") as learner:
        assert learner.stderr is not None
        address = next(line.split()[-1] for line in learner.stderr if "listening on" in line)
        with started(*ENV_SERVER, f"--address={address}"):
            _, errors = learner.communicate(timeout=TIMEOUT_S)
        assert learner.returncode == 0, errors
    (step,) = checkpoint_steps(tmp_path / "run")
    assert step >= 400

    for words in (["plot", str(tmp_path / "run"), f"--out={tmp_path}/curve.png"], ["report", str(tmp_path / "run")]):
        process = run([*kubebeast, *words])
        assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("command", ["top", "fleet"])
def test_a_fleet_is_watched_without_environments(command: str) -> None:
    code = WITHOUT_ENVIRONMENTS.partition("if __name__")[0] + (
        "from importlib import import_module\n"
        "from kubebeast_common.cli.command import find_commands\n"
        f"import_module(find_commands()[{command!r}].target.partition(':')[0])\n"
    )
    process = run([sys.executable, "-c", code])
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("command", ["mono", "train", "tune", "eval"])
def test_a_command_that_needs_environments_says_in_one_line_what_is_missing(
    command: str, kubebeast: list[str], tmp_path: Path
) -> None:
    process = run([*kubebeast, command, "--savedir", str(tmp_path / "runs"), "--xpid=run"])
    assert process.returncode == 1
    line = process.stderr.splitlines()[-1]
    assert "the package kubebeast-envserver is missing: pip install ./protos" in line
    assert "Traceback" not in process.stderr and not (tmp_path / "runs").exists()
