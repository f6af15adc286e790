"""Checkpoints of a run: written atomically, limited in number, and skipped if they are damaged."""

import contextlib
import io
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from kubebeast_common import atomic_file
from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.run import weights_file
from kubebeast_learner.run.checkpoint_file import FORMAT as FORMAT
from kubebeast_learner.run.checkpoint_file import REQUIRED_KEYS, DamagedCheckpointError, load
from kubebeast_learner.run.checkpoint_file import CheckpointError as CheckpointError
from kubebeast_learner.run.finite import not_finite_in
from kubebeast_runs.checkpoints import checkpoint_paths, is_file, name_of, step_of
from kubebeast_runs.weights import NAME as WEIGHTS

logger = logging.getLogger(__name__)

_UNFINISHED = re.compile(rf"(?:checkpoint-\d{{12,}}\.pt|{re.escape(WEIGHTS)}){re.escape(atomic_file.SUFFIX)}")


class CheckpointStore:
    """The checkpoints of one run, `checkpoint-<step>.pt` in its folder, and the newest weights. Not thread-safe.

    Deletes only its own files: checkpoints that newer ones replace, and checkpoints that are proven damaged. Other
    files of the folder stay, as do folders, FIFOs and devices with such a name.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._damaged: list[tuple[Path, _Identity]] = []
        self._passed_over: dict[Path, str] = {}
        """Checkpoints that are whole but not finite, with the reason. They stay, and do not count toward `keep`."""

    def save(self, state: Mapping[str, Any]) -> Path:
        """Writes `state` under its step, keeps the newest `keep` up to this step, and replaces the weights file.

        Checkpoints of higher steps stay: they are from a process of the run before it was resumed from an older
        checkpoint. A crash at any moment leaves the older checkpoints and either no new one or a whole one. Failures to
        write the weights or to delete old files are only logged.

        Args:
            state: REQUIRED_KEYS and more; tensors and plain Python values, as `torch.load(weights_only=True)`
                requires.

        Raises:
            ValueError: If a required key is missing.
            OSError: If the volume does not take the file; the unfinished file is removed.
        """
        missing = REQUIRED_KEYS - state.keys()
        if missing:
            raise ValueError(f"state lacks {sorted(missing)}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        path = self._folder / name_of(state["step"])
        # Serialized in memory first: torch hides the operating system's reason if a write fails.
        content = io.BytesIO()
        torch.save(dict(state), content)
        write_atomically(path, content.getbuffer())
        self._passed_over.pop(path, None)
        try:
            self._remove_old(state["step"])
        except OSError as error:
            logger.error("older checkpoints in %s not deleted: %s", self._folder, error)
        self._save_weights(state)
        return path

    def paths(self) -> list[Path]:
        """Returns the checkpoint files, newest first. Raises OSError if the folder cannot be listed."""
        return checkpoint_paths(self._folder)

    def newest_size(self) -> int:
        """Returns the bytes of the newest checkpoint and of the weights; 0 if there are none or they cannot be read."""
        size = 0
        with contextlib.suppress(OSError):
            for path in [*self.paths()[:1], self._folder / WEIGHTS]:
                size += path.stat().st_size
        return size

    def load_newest(self) -> tuple[Path, dict[str, Any]] | None:
        """Returns path and state of the newest checkpoint with finite numbers, or None if there are no checkpoints.

        Logs a warning for each newer one that is damaged or not finite. The next `save` deletes the damaged ones, and
        no others.

        Raises:
            CheckpointError: If all checkpoints are skipped, since a fresh start would overwrite them. Also if one
                cannot be read here and now but is not proven damaged, since resuming from an older one would lose
                its progress.
        """
        paths = self.paths()
        for path in paths:
            try:
                state = load(path)
            except DamagedCheckpointError as error:
                logger.warning("%s; trying the one before", error)
                self._damaged.append((path, _identity(path)))
                continue
            except CheckpointError as error:
                raise CheckpointError(
                    f"{error}. It is not proven damaged, so it is neither passed over nor deleted: make it readable, "
                    "take the version that wrote it, or move it out of the folder to go on from the one before"
                ) from error
            if found := _not_finite(state):
                logger.warning("checkpoint %s is not finite: %s; it stays, going back to the one before", path, found)
                self._passed_over[path] = found
                continue
            return path, state
        if self._passed_over:
            reason = next(iter(self._passed_over.values()))
            text = f"none of the {len(paths)} checkpoints in {self._folder} can be read and is finite: {reason}"
            raise CheckpointError(text)
        if paths:
            raise CheckpointError(f"none of the {len(paths)} checkpoints in {self._folder} can be read")
        return None

    def _remove_old(self, step: int) -> None:
        while self._damaged:
            path, identity = self._damaged.pop()
            if path.name == name_of(step_of(path)) and _identity(path) == identity:
                path.unlink(missing_ok=True)
        mine = [path for path in self.paths() if path.name == name_of(step_of(path))]
        past = [path for path in mine if path not in self._passed_over and (step_of(path) or 0) <= step]
        for old in past[self._keep :]:
            old.unlink(missing_ok=True)

    def _save_weights(self, state: Mapping[str, Any]) -> None:
        path = self._folder / WEIGHTS
        try:
            write_atomically(path, weights_file.encode(state))
        except OSError as error:
            logger.error("%s not written: %s", path, error)

    def _remove_unfinished(self) -> None:
        """Removes the files of a process that was killed during a save."""
        for path in self._folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) and is_file(path):
                path.unlink(missing_ok=True)


def _not_finite(state: Mapping[str, Any]) -> str:
    """Calls not_finite_in, and returns "" for a malformed state, which the reader of its values rejects."""
    try:
        return not_finite_in(state["learner"])
    except (TypeError, ValueError, AttributeError):
        return ""


_Identity = tuple[int, int, int] | None
"""Inode, size and modification time, which differ if the file was replaced by another one."""


def _identity(path: Path) -> _Identity:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def rng_state() -> dict[str, Any]:
    """Returns the states of torch's random number generators, as tensors."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_rng_state(state: Mapping[str, Any]) -> None:
    """Restores the states from `rng_state`; devices that no longer exist are skipped."""
    torch.set_rng_state(state["cpu"])
    for device, device_state in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(device_state, device)
