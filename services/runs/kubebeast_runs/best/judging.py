"""The one rule by which commands choose the best checkpoint of a run, and the scores by which a training keeps some."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from kubebeast_runs.best.rule import Scores, best_first
from kubebeast_runs.best.training_scores import read_training_scores
from kubebeast_runs.checkpoints import SavedCheckpoint, list_checkpoints
from kubebeast_runs.home import evaluations_of
from kubebeast_runs.scores import ScoreError, choose_evaluator, read_scores
from kubebeast_runs.storage.storage import Files

logger = logging.getLogger(__name__)


class Judged(NamedTuple):
    """A checkpoint with its score."""

    saved: SavedCheckpoint
    score: float
    judge: str
    """Origin of the score, for messages."""

    def __str__(self) -> str:
        return f"the best checkpoint by {self.judge}: step {self.saved.step:,}, mean return {self.score:.2f}"


def judged(files: Files, evaluations: Mapping[str, Files], evaluator: str = "") -> list[Judged]:
    """Returns the checkpoints of a run that have a score, the best first.

    The scores are those of an evaluator if a checkpoint has one of it, and those of the training otherwise.

    Args:
        files: Files of the training.
        evaluations: Files of the evaluators by their names, "" for the one without a name.
        evaluator: Name of the evaluator that counts; "" is the one without a name, or the only one.

    Raises:
        ScoreError: If no checkpoint has a score, if no checkpoint has one of the named
            evaluator, or if it is unclear which one counts.
        OSError: If scores or checkpoints cannot be read.
    """
    checkpoints = list_checkpoints(files)
    if evaluations or evaluator:
        name = choose_evaluator(evaluator, evaluations)
        judge = f"the evaluator {name!r}" if name else "evaluation"
        if found := _judged(checkpoints, _scores_of(evaluations[name], name), judge):
            return found
        if evaluator:
            raise ScoreError(f"no checkpoint in {files.place('')} has a score of the evaluator {evaluator!r}")
    own = [saved for saved in checkpoints if saved.is_own]
    if found := _judged(own, read_training_scores(files), "training"):
        return found
    raise ScoreError(f"no checkpoint in {files.place('')} has a score, of an evaluator or of the training")


class EvaluationScores:
    """The scores by which a training keeps its best checkpoints: those of one evaluator, as soon as it has begun."""

    def __init__(self, savedir: str, xpid: str, evaluator: str) -> None:
        """evaluator: the one that counts, as for `judged`."""
        self._savedir, self._xpid, self._evaluator = savedir, xpid, evaluator
        self._said = ""

    def read(self) -> list[Scores]:
        """Returns the scores; none if there are none yet.

        If it is unclear which evaluator counts, returns those of each, so that nobody's best checkpoint is lost, and
        logs this once. Blocks; raises OSError.
        """
        evaluations = evaluations_of(self._savedir, self._xpid)
        if not evaluations or (self._evaluator and self._evaluator not in evaluations):
            return []
        try:
            names = [choose_evaluator(self._evaluator, evaluations)]
        except ScoreError as error:
            if str(error) != self._said:
                logger.warning("best_evaluator = '': %s; the best checkpoints of each are kept", error)
            self._said, names = str(error), list(evaluations)
        return [_scores_of(evaluations[name], name) for name in names]


def _judged(checkpoints: list[SavedCheckpoint], scores: Scores, judge: str) -> list[Judged]:
    return [Judged(saved, scores[saved.step], judge) for saved in best_first(checkpoints, scores)]


def _scores_of(files: Files, evaluator: str) -> Scores:
    """Returns the newest mean return of each checkpoint. Raises OSError."""
    table = read_scores(files, evaluator)
    returns = table.columns.get("mean_return", ())
    return {int(step): score for step, score in zip(table.steps, returns, strict=False)}
