"""A venv for each system, with its public package and this venv's version of PyTorch."""

import hashlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_BUILD_CONSTRAINTS = "setuptools<66\nwheel<0.39\n"
"""Versions for building packages without a wheel: the metadata of gym is not valid for newer ones."""
_PIP = "pip>=25.3"
"""Version of pip with constraints of builds."""
_TORCH = f"torch=={importlib.metadata.version('torch').partition('+')[0]}"


def python_with(requirements: Sequence[str], folder: Path) -> Path:
    """Returns the Python of a venv below `folder` with `requirements` and torch; without requirements, this Python.

    If the venv is missing, it is created, with pip's own configuration.

    Raises:
        RuntimeError: If pip fails, with its last lines.
    """
    if not requirements:
        return Path(sys.executable)
    wanted = [_TORCH, *requirements]
    venv = folder.resolve() / hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    python, complete = venv / "bin" / "python", venv / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        constraints = venv / "build-constraints.txt"
        constraints.write_text(_BUILD_CONSTRAINTS)
        _install(python, [_PIP])
        _install(python, [f"--build-constraint={constraints}", *wanted])
        complete.touch()
    return python


def _install(python: Path, words: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", *words]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"pip install {' '.join(words)}: {_last_lines(run.stdout)}")


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-3:])
