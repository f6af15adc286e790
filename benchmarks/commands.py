"""Commands of KubeBeast that benchmarks run."""

import subprocess
import sys
from pathlib import Path


def kubebeast(command: str, *flags: str, folder: Path | None = None) -> str:
    """Runs a command, in `folder` if given, and returns its output. Raises CalledProcessError if it fails."""
    words = [sys.executable, "-m", "kubebeast_learner", command, *flags]
    return subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
