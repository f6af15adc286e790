"""Fresh virtual environments for tests of pip installations, and folders of packages beside the installed ones."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = (
    *("protos", "services/common", "services/envserver", "services/learner", "services/observe"),
    "services/runs",
)
INSTALL_TIMEOUT_S = 900


def fresh_venv(folder: Path) -> Path:
    """Makes an empty virtual environment in `folder`, beside constraints.txt and copies of sources: pip builds in
    them.
    """
    products = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "*.so")
    for name in DISTRIBUTIONS:
        shutil.copytree(ROOT / name, folder / name, ignore=products)
    shutil.copy(ROOT / "constraints.txt", folder)
    # The pip of this Python can install into it.
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(make, check=True, timeout=INSTALL_TIMEOUT_S)
    return folder / "venv"


def pip_install(venv: Path, *words: str | Path, env: Mapping[str, str] = os.environ) -> None:
    """Runs pip in the folder of the virtual environment."""
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", *words],
        cwd=venv.parent,
        env=env,
        check=True,
        timeout=INSTALL_TIMEOUT_S,
    )


@contextlib.contextmanager
def beside(*packages: str) -> Iterator[str]:
    """Yields a PYTHONPATH with a folder of these packages, pinned and without dependencies, and with the tests.

    The folder is removed at exit, not some runs later.
    """
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--target", folder]
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", *packages], check=True, timeout=INSTALL_TIMEOUT_S)
        yield f"{folder}:{ROOT}"
