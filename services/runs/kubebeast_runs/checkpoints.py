"""Checkpoint files of a run, by their names: `checkpoint-<step>.pt`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from kubebeast_runs.storage.storage import Files, StoredFile

_NAME = re.compile(r"checkpoint-(\d+)\.pt")


class SavedCheckpoint(NamedTuple):
    """A checkpoint as it was saved: a later file of the same name is not equal to it."""

    step: int
    """Env-steps in its name."""
    file: StoredFile

    @property
    def is_own(self) -> bool:
        """True if a run has chosen its name; users choose others for the same step."""
        return self.file.name == name_of(self.step)


def list_checkpoints(storage: Files) -> list[SavedCheckpoint]:
    """Returns the checkpoints, newest (highest step) first. Raises OSError if the storage cannot be listed."""
    return sorted(_checkpoints(storage.files()), key=lambda saved: saved.step, reverse=True)


def name_of(step: int) -> str:
    """Returns the name of a run's own checkpoint."""
    return f"checkpoint-{step:012d}.pt"


def step_of(name: str) -> int | None:
    """Returns the env-steps in the name of a checkpoint; None for any other file."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def _checkpoints(files: Iterable[StoredFile]) -> Iterable[SavedCheckpoint]:
    for file in files:
        step = step_of(file.name)
        if step is not None:
            yield SavedCheckpoint(step, file)
