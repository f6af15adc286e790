"""Checkpoints of a run: written atomically, limited in number, and skipped if they are damaged."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from kubebeast_common.atomic_file import write_all
from kubebeast_learner.models.finite import not_finite_in
from kubebeast_learner.run import weights_file
from kubebeast_learner.run.checkpoint_file import FORMAT as FORMAT
from kubebeast_learner.run.checkpoint_file import (
    REQUIRED_KEYS,
    DamagedCheckpointError,
    MissingCheckpointError,
    load,
    write_state,
)
from kubebeast_learner.run.checkpoint_file import CheckpointError as CheckpointError
from kubebeast_runs.best.judging import Judged, judged
from kubebeast_runs.best.rule import Scores, kept
from kubebeast_runs.best.training_scores import TrainingScores
from kubebeast_runs.checkpoints import SavedCheckpoint, list_checkpoints, name_of, step_of
from kubebeast_runs.names import CHECKPOINTS
from kubebeast_runs.storage.storage import Files, Storage
from kubebeast_runs.weights import NAME as WEIGHTS

logger = logging.getLogger(__name__)

_MAX_TRIES = 5
"""Times that the best checkpoint is looked up, if a training deletes it before it is read."""


class Saved(NamedTuple):
    """A checkpoint that was written."""

    place: str
    """Path or URL."""
    num_bytes: int


class CheckpointReader:
    """The checkpoints of one run, `checkpoint-<step>.pt`, for reading. Not thread-safe."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._damaged: list[SavedCheckpoint] = []
        self._passed_over: dict[str, str] = {}
        """Reasons by name for checkpoints that are whole but not finite."""

    def checkpoints(self) -> Sequence[SavedCheckpoint]:
        """Returns the checkpoints, newest first. Raises OSError if the storage cannot be listed."""
        return list_checkpoints(self._files)

    @property
    def place(self) -> str:
        """Path or URL of the run."""
        return self._files.place("")

    def load_newest(self) -> tuple[str, dict[str, Any]] | None:
        """Returns place and state of the newest checkpoint with finite numbers, or None if there are no checkpoints.

        Logs a warning for each newer one that is damaged or not finite.

        Raises:
            CheckpointError: If all checkpoints are skipped, since a fresh start would overwrite them. Also if one
                cannot be read here and now but is not proven damaged, since resuming from an older one would lose
                its progress.
        """
        found = self.checkpoints()
        if not found:
            return None
        saved, state = self._load_first(found, "the one before")
        return self._files.place(saved.file.name), state

    def load_best(self, evaluations: Mapping[str, Files], evaluator: str = "") -> tuple[Judged, str, dict[str, Any]]:
        """Returns the best checkpoint by the rule of `judged`, with its place and its state.

        Damaged ones and ones that are not finite are skipped with a warning. If a training deletes the checkpoint
        meanwhile, because it has a better one, that one is returned.

        Raises:
            ScoreError: If `judged` raises it, e.g. because no checkpoint has a score.
            CheckpointError: If the checkpoint cannot be read, or all are skipped.
            OSError: If checkpoints or scores cannot be read.
        """
        for _ in range(_MAX_TRIES - 1):
            with contextlib.suppress(MissingCheckpointError):
                return self._load_best(evaluations, evaluator)
        return self._load_best(evaluations, evaluator)

    def _load_best(self, evaluations: Mapping[str, Files], evaluator: str) -> tuple[Judged, str, dict[str, Any]]:
        ranking = {each.saved: each for each in judged(self._files, evaluations, evaluator)}
        saved, state = self._load_first(list(ranking), "the next best")
        return ranking[saved], self._files.place(saved.file.name), state

    def _load_first(self, found: Sequence[SavedCheckpoint], next_one: str) -> tuple[SavedCheckpoint, dict[str, Any]]:
        """Returns the first checkpoint with finite numbers, and its state; next_one: the one after it, for messages.

        Raises CheckpointError.
        """
        for saved in found:
            try:
                state = load(self._files, saved.file.name)
            except DamagedCheckpointError as error:
                logger.warning("%s; trying %s", error, next_one)
                self._damaged.append(saved)
                continue
            except MissingCheckpointError:
                raise
            except CheckpointError as error:
                raise CheckpointError(
                    f"{error}. It is not proven damaged, so it is neither passed over nor deleted: make it readable, "
                    f"take the version that wrote it, or move it out of the folder to go on from {next_one}"
                ) from error
            if reason := _not_finite(state):
                place = self._files.place(saved.file.name)
                logger.warning("checkpoint %s is not finite: %s; it stays, going back to %s", place, reason, next_one)
                self._passed_over[saved.file.name] = reason
                continue
            return saved, state
        reason = next((f" and is finite: {reason}" for reason in self._passed_over.values()), "")
        raise CheckpointError(f"none of the {len(found)} checkpoints in {self.place} can be read{reason}")


class CheckpointStore(CheckpointReader):
    """The checkpoints of one run, the newest weights, and the scores of the checkpoints. Not thread-safe.

    Deletes only its own files: checkpoints that are neither new nor good enough any more, and checkpoints that are
    proven damaged. All other files of the storage stay. Those that are not finite stay, too, and do not count.
    """

    def __init__(
        self,
        storage: Storage,
        keep: int,
        keep_best: int = 0,
        evaluation_scores: Callable[[], Sequence[Scores]] | None = None,
    ) -> None:
        """Keeps the `keep` newest checkpoints, and of each kind of scores the `keep_best` best.

        evaluation_scores: returns the scores of evaluators, for each save anew; may raise OSError. None: the scores are
        those of the training.
        """
        super().__init__(storage)
        self._storage = storage
        self._keep, self._keep_best = keep, keep_best
        self._evaluation_scores = evaluation_scores
        self._training_scores = TrainingScores(storage)

    def save(self, state: Mapping[str, Any]) -> Saved:
        """Writes `state` under its step, deletes checkpoints up to this step, and replaces the weights file.

        Checkpoints of higher steps stay: they are from a process of the run before it was resumed from an older
        checkpoint. A crash at any moment leaves the older checkpoints and either no new one or a whole one. Failures to
        write the score or the weights, to read scores or to delete old files are only logged.

        Args:
            state: REQUIRED_KEYS and more; tensors and plain Python values, as `torch.load(weights_only=True)`
                requires. `score` is the checkpoint's score in the training, None for none.

        Raises:
            ValueError: If a required key is missing.
            OSError: If the storage does not take the file; the unfinished file is removed.
        """
        missing = REQUIRED_KEYS - state.keys()
        if missing:
            raise ValueError(f"state lacks {sorted(missing)}")
        self._storage.delete_unfinished(lambda name: name in (WEIGHTS, CHECKPOINTS, name_of(step_of(name) or 0)))
        name = name_of(state["step"])
        self._note_score(state)
        with self._storage.create(name) as file:
            write_state(dict(state), file)
            num_bytes = file.tell()
        self._passed_over.pop(name, None)
        try:
            self._remove_old(state["step"])
        except OSError as error:
            logger.error("older checkpoints than %s not deleted: %s", self._storage.place(name), error)
        self._save_weights(state)
        return Saved(self._storage.place(name), num_bytes)

    def newest_size(self) -> int:
        """Returns the bytes of the newest checkpoint and of the weights; 0 if there are none or they cannot be read."""
        with contextlib.suppress(OSError):
            newest = [saved.file.name for saved in self.checkpoints()[:1]]
            return sum(file.num_bytes for file in self._storage.files() if file.name in (WEIGHTS, *newest))
        return 0

    def _remove_old(self, step: int) -> None:
        own = [saved for saved in self.checkpoints() if saved.is_own]
        past = [saved for saved in own if saved.file.name not in self._passed_over and saved.step <= step]
        whole = [saved for saved in past if saved not in self._damaged]
        remaining = kept(whole, self._keep, self._keep_best, self._scores() if self._keep_best else ())
        replaced = [saved for saved in whole if saved not in remaining]
        for saved in (*(saved for saved in own if saved in self._damaged), *replaced):
            self._storage.delete(saved.file.name)
        self._damaged.clear()

    def _scores(self) -> Sequence[Scores]:
        return [self._training_scores.by_step()] if self._evaluation_scores is None else self._evaluation_scores()

    def _note_score(self, state: Mapping[str, Any]) -> None:
        try:
            self._training_scores.note(state["step"], state.get("score"), [saved.step for saved in self.checkpoints()])
        except OSError as error:
            logger.error("the score of the checkpoint at step %d not written: %s", state["step"], error)

    def _save_weights(self, state: Mapping[str, Any]) -> None:
        try:
            with self._storage.create(WEIGHTS) as file:
                write_all(file, weights_file.encode(state))
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
