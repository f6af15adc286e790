"""Checkpoint files of a run, by their names: `checkpoint-<step>.pt` in its folder."""

import re
from pathlib import Path

_NAME = re.compile(r"checkpoint-(\d+)\.pt")


def checkpoint_paths(folder: Path) -> list[Path]:
    """Returns the checkpoint files, newest (highest step) first. Raises OSError if the folder cannot be listed."""
    if not folder.is_dir():
        return []
    steps = {path: step for path in folder.iterdir() if (step := step_of(path)) is not None}
    return sorted(filter(is_file, steps), key=lambda path: steps[path], reverse=True)


def step_of(path: Path) -> int | None:
    """Returns the env-steps in the name of a checkpoint; None for any other file."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else None


def name_of(step: int | None) -> str:
    """Returns the name of a run's own checkpoint; other names of the same step are chosen by users."""
    return f"checkpoint-{step or 0:012d}.pt"


def is_file(path: Path) -> bool:
    """Returns True if `path` opens without blocking; False for a broken link."""
    try:
        return path.is_file()
    except OSError:
        return False
