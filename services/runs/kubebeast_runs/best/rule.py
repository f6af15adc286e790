"""Order of a run's checkpoints by score, and the ones that are kept."""

import math
from collections.abc import Mapping, Sequence

from kubebeast_runs.checkpoints import SavedCheckpoint

Scores = Mapping[int, float]
"""Scores of one kind by env-steps; one that is not finite is none."""


def best_first(checkpoints: Sequence[SavedCheckpoint], scores: Scores) -> list[SavedCheckpoint]:
    """Returns the checkpoints that have a score, the highest first; of equal ones, the newer is the better."""
    scored = [saved for saved in checkpoints if math.isfinite(scores.get(saved.step, math.nan))]
    return sorted(scored, key=lambda saved: (scores[saved.step], saved.step), reverse=True)


def kept(
    checkpoints: Sequence[SavedCheckpoint], num_newest: int, num_best: int, scores: Sequence[Scores]
) -> set[SavedCheckpoint]:
    """Returns the newest num_newest of the checkpoints, and of each kind of scores the num_best with the highest."""
    newest = sorted(checkpoints, key=lambda saved: saved.step, reverse=True)[:num_newest]
    return {*newest, *(saved for each in scores for saved in best_first(checkpoints, each)[:num_best])}
