"""Processes of `kubebeast` that end with the sweep."""

import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

_LINES = 5
"""Last lines of the output of a process that has failed, for the log."""


def start_tied(command: Sequence[str], cores: Collection[int], output: Path) -> "subprocess.Popen[bytes]":
    """Starts `kubebeast COMMAND` on `cores`. Its output is added to a file. Raises OSError."""
    tie = [sys.executable, "-m", "kubebeast_sweep.processes.launched", str(os.getpid()), ",".join(map(str, cores))]
    program = [sys.executable, "-m", "kubebeast_learner", *command]
    with open(output, "ab") as file:
        return subprocess.Popen(
            [*tie, *program], stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )


def last_lines(output: Path) -> str:
    """Returns the end of the output of a process."""
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LINES:])
