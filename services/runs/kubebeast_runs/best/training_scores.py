"""Training scores of a run's checkpoints, in a file beside them: checkpoints.json."""

import json
import math
from collections.abc import Collection

from kubebeast_common.atomic_file import write_all
from kubebeast_runs.best.rule import Scores
from kubebeast_runs.checkpoints import name_of, step_of
from kubebeast_runs.names import CHECKPOINTS
from kubebeast_runs.storage.storage import Files, Storage

FORMAT = 1
_SCORE = "training_score"


def read_training_scores(files: Files) -> Scores:
    """Returns the scores of a run's own checkpoints; empty for a run of a version without them.

    Raises OSError if the file cannot be read, or is no such file.
    """
    try:
        with files.open(CHECKPOINTS) as file:
            content = file.read() or b""
    except FileNotFoundError:
        return {}
    try:
        return _decode(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OSError(
            f"{files.place(CHECKPOINTS)} is no list of checkpoints: {type(error).__name__}: {error}"
        ) from error


class TrainingScores:
    """The scores of the checkpoints that this process saves, and of those from before. Not thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._before: Scores | None = None
        """Scores that the file had when it was first read."""
        self._noted: dict[int, float] = {}
        self._written: Scores = {}

    def note(self, step: int, score: float | None, saved_steps: Collection[int]) -> None:
        """Writes the score of a checkpoint before the checkpoint itself, so that none ever has the score of another.

        A score that cannot be written is written with the next one.

        Args:
            step: Env-steps of the checkpoint.
            score: None or a number that is not finite for a checkpoint without a score.
            saved_steps: Env-steps of the checkpoints that exist; scores of others are forgotten.

        Raises:
            OSError: If the scores cannot be read or written.
        """
        self._noted[step] = math.nan if score is None else score
        scores = {each: number for each, number in self.by_step().items() if each in (step, *saved_steps)}
        if scores != self._written:
            with self._storage.create(CHECKPOINTS) as file:
                write_all(file, _encode(scores))
            self._written = scores

    def by_step(self) -> Scores:
        """Returns the finite scores by env-steps. Raises OSError if those from before cannot be read."""
        if self._before is None:
            self._before = self._written = read_training_scores(self._storage)
        scores = {**self._before, **self._noted}
        return {step: score for step, score in scores.items() if math.isfinite(score)}


def _encode(scores: Scores) -> bytes:
    checkpoints = {name_of(step): {_SCORE: score} for step, score in sorted(scores.items())}
    return json.dumps({"format": FORMAT, "checkpoints": checkpoints}, indent=1, allow_nan=False).encode()


def _decode(content: bytes) -> Scores:
    plain = json.loads(content)
    if plain["format"] != FORMAT:
        raise ValueError(f"its format is {plain['format']!r}, this version reads {FORMAT}")
    steps = {name: step_of(name) for name in plain["checkpoints"]}
    return {step: float(plain["checkpoints"][name][_SCORE]) for name, step in steps.items() if step is not None}
