"""Programs of Python in processes of their own, from the folder of the repository."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300.0


def run(arguments: Sequence[str], variables: Mapping[str, str]) -> str:
    """Runs `python ARGUMENT ...` and returns its output; raises AssertionError with it if the program fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=variables,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    return done.stdout
