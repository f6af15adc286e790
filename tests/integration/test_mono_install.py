"""`kubebeast mono` runs after pip alone: a fresh virtual environment, no compiler, no native package."""

import importlib.metadata
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.fresh_venv import DISTRIBUTIONS, INSTALL_TIMEOUT_S, fresh_venv, pip_install

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + 300)]


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the packages that the README installs."""
    venv = fresh_venv(tmp_path_factory.mktemp("install"))
    link_torch(venv)
    names = [f"./{name}" for name in DISTRIBUTIONS]
    pip_install(venv, "-c", "constraints.txt", *names, env=without_compiler(venv))
    return venv


def link_torch(venv: Path) -> None:
    """Links the PyTorch that is installed here: unpacking its gigabyte again would take longer than the rest."""
    (site_packages,) = venv.glob("lib/python*/site-packages")
    torch = importlib.metadata.distribution("torch")
    for name in {file.parts[0] for file in torch.files or () if file.parts[0] not in ("..", "__pycache__")}:
        (site_packages / name).symlink_to(Path(str(torch.locate_file(name))))


def without_compiler(venv: Path) -> dict[str, str]:
    """Returns the environment variables of a machine on which only the programs of `venv` are found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KUBEBEAST_", "PYTHON"))}
    return kept | {"PATH": str(venv / "bin"), "CC": "no-compiler", "CXX": "no-compiler", "OMP_NUM_THREADS": "1"}


def test_mono_trains_and_is_evaluated_without_a_compiler(venv: Path, tmp_path: Path) -> None:
    def kubebeast(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [venv / "bin" / "kubebeast", *words, f"--savedir={tmp_path}", "--xpid=catch"],
            cwd=tmp_path,
            env=without_compiler(venv),
            capture_output=True,
            text=True,
            timeout=200,
        )

    trained = kubebeast("mono", "--env=kubebeast_envserver.catch:Catch-v0", "--total-steps=3000", "--progress=none")
    assert trained.returncode == 0, trained.stderr
    evaluated = kubebeast("eval", "--episodes=2", "--json")
    assert evaluated.returncode == 0, evaluated.stderr


def test_training_with_env_servers_says_what_is_missing(venv: Path, tmp_path: Path) -> None:
    process = subprocess.run(
        [venv / "bin" / "kubebeast", "train", f"--savedir={tmp_path}"],
        env=without_compiler(venv),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert process.returncode == 1
    assert "kubebeast-native is missing" in process.stderr
