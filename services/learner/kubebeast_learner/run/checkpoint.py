"""Checkpoints of a run: written atomically, limited in number, and skipped if they are damaged."""

import contextlib
import io
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from kubebeast_learner.models.finite import not_finite_in
from kubebeast_learner.run import weights_file
from kubebeast_learner.run.checkpoint_file import FORMAT as FORMAT
from kubebeast_learner.run.checkpoint_file import REQUIRED_KEYS, DamagedCheckpointError, load
from kubebeast_learner.run.checkpoint_file import CheckpointError as CheckpointError
from kubebeast_runs.checkpoints import SavedCheckpoint, list_checkpoints, name_of, step_of
from kubebeast_runs.storage.storage import Storage
from kubebeast_runs.weights import NAME as WEIGHTS

logger = logging.getLogger(__name__)


class Saved(NamedTuple):
    """A checkpoint that was written."""

    place: str
    """Path or URL."""
    num_bytes: int


class CheckpointStore:
    """The checkpoints of one run, `checkpoint-<step>.pt`, and the newest weights. Not thread-safe.

    Deletes only its own files: checkpoints that newer ones replace, and checkpoints that are proven damaged. All other
    files of the storage stay.
    """

    def __init__(self, storage: Storage, keep: int) -> None:
        self._storage = storage
        self._keep = keep
        self._damaged: list[SavedCheckpoint] = []
        self._passed_over: dict[str, str] = {}
        """Reasons by name for checkpoints that are whole but not finite. They stay, and do not count toward `keep`."""

    def save(self, state: Mapping[str, Any]) -> Saved:
        """Writes `state` under its step, keeps the newest `keep` up to this step, and replaces the weights file.

        Checkpoints of higher steps stay: they are from a process of the run before it was resumed from an older
        checkpoint. A crash at any moment leaves the older checkpoints and either no new one or a whole one. Failures to
        write the weights or to delete old files are only logged.

        Args:
            state: REQUIRED_KEYS and more; tensors and plain Python values, as `torch.load(weights_only=True)`
                requires.

        Raises:
            ValueError: If a required key is missing.
            OSError: If the storage does not take the file; the unfinished file is removed.
        """
        missing = REQUIRED_KEYS - state.keys()
        if missing:
            raise ValueError(f"state lacks {sorted(missing)}")
        self._storage.delete_unfinished(lambda name: name in (WEIGHTS, name_of(step_of(name) or 0)))
        name = name_of(state["step"])
        # Serialized in memory first: torch hides the operating system's reason if a write fails.
        content = io.BytesIO()
        torch.save(dict(state), content)
        self._storage.write(name, content.getbuffer())
        self._passed_over.pop(name, None)
        try:
            self._remove_old(state["step"])
        except OSError as error:
            logger.error("older checkpoints than %s not deleted: %s", self._storage.place(name), error)
        self._save_weights(state)
        return Saved(self._storage.place(name), content.getbuffer().nbytes)

    def checkpoints(self) -> Sequence[SavedCheckpoint]:
        """Returns the checkpoints, newest first. Raises OSError if the storage cannot be listed."""
        return list_checkpoints(self._storage)

    def newest_size(self) -> int:
        """Returns the bytes of the newest checkpoint and of the weights; 0 if there are none or they cannot be read."""
        with contextlib.suppress(OSError):
            newest = [saved.file.name for saved in self.checkpoints()[:1]]
            return sum(file.num_bytes for file in self._storage.files() if file.name in (WEIGHTS, *newest))
        return 0

    def load_newest(self) -> tuple[str, dict[str, Any]] | None:
        """Returns place and state of the newest checkpoint with finite numbers, or None if there are no checkpoints.

        Logs a warning for each newer one that is damaged or not finite. The next `save` deletes the damaged ones, and
        no others.

        Raises:
            CheckpointError: If all checkpoints are skipped, since a fresh start would overwrite them. Also if one
                cannot be read here and now but is not proven damaged, since resuming from an older one would lose
                its progress.
        """
        found, where = self.checkpoints(), self._storage.place("")
        for saved in found:
            place = self._storage.place(saved.file.name)
            try:
                state = load(self._storage, saved.file.name)
            except DamagedCheckpointError as error:
                logger.warning("%s; trying the one before", error)
                self._damaged.append(saved)
                continue
            except CheckpointError as error:
                raise CheckpointError(
                    f"{error}. It is not proven damaged, so it is neither passed over nor deleted: make it readable, "
                    "take the version that wrote it, or move it out of the folder to go on from the one before"
                ) from error
            if reason := _not_finite(state):
                logger.warning("checkpoint %s is not finite: %s; it stays, going back to the one before", place, reason)
                self._passed_over[saved.file.name] = reason
                continue
            return place, state
        if self._passed_over:
            reason = next(iter(self._passed_over.values()))
            raise CheckpointError(
                f"none of the {len(found)} checkpoints in {where} can be read and is finite: {reason}"
            )
        if found:
            raise CheckpointError(f"none of the {len(found)} checkpoints in {where} can be read")
        return None

    def _remove_old(self, step: int) -> None:
        own = [saved for saved in self.checkpoints() if saved.is_own]
        past = [saved for saved in own if saved.file.name not in self._passed_over and saved.step <= step]
        replaced = [saved for saved in past if saved not in self._damaged][self._keep :]
        for saved in (*(saved for saved in own if saved in self._damaged), *replaced):
            self._storage.delete(saved.file.name)
        self._damaged.clear()

    def _save_weights(self, state: Mapping[str, Any]) -> None:
        try:
            self._storage.write(WEIGHTS, weights_file.encode(state))
        except OSError as error:
            logger.error("%s not written: %s", self._storage.place(WEIGHTS), error)


def _not_finite(state: Mapping[str, Any]) -> str:
    """Calls not_finite_in, and returns "" for a malformed state, which the reader of its values rejects."""
    try:
        return not_finite_in(state["learner"])
    except (TypeError, ValueError, AttributeError):
        return ""


def rng_state() -> dict[str, Any]:
    """Returns the states of torch's random number generators, as tensors."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_rng_state(state: Mapping[str, Any]) -> None:
    """Restores the states from `rng_state`; devices that no longer exist are skipped."""
    torch.set_rng_state(state["cpu"])
    for device, device_state in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(device_state, device)
