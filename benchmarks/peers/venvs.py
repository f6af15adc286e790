"""A venv for each system, from its public package, with this venv's version of PyTorch."""

import hashlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_TORCH = f"torch=={importlib.metadata.version('torch').partition('+')[0]}"


def python_with(requirements: Sequence[str], folder: Path) -> Path:
    """The Python of a venv below `folder` that has `requirements` and torch; of the one that runs here without any.

    Makes it where it is missing, with pip's own configuration. RuntimeError has pip's last lines.
    """
    if not requirements:
        return Path(sys.executable)
    wanted = [_TORCH, *requirements]
    venv = folder.resolve() / hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    python, complete = venv / "bin" / "python", venv / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *wanted]
        run = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"pip install {' '.join(wanted)}: {_last_lines(run.stdout)}")
        complete.touch()
    return python


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-3:])
