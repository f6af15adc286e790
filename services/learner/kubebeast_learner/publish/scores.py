"""Scores of a checkpoint: those of its evaluation or, for tasks without one, those of its training."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kubebeast_learner.run.state import Checkpoint
from kubebeast_runs.scores import score_at


class Score(NamedTuple):
    """Unclipped returns of whole episodes in one environment."""

    env_id: str
    mean: float
    std: float
    """As of a whole population."""
    num_episodes: int
    origin: Literal["evaluation", "training"]


def find_scores(checkpoint: Checkpoint, folder: Path) -> list[Score]:
    """Returns a score for each environment.

    An evaluation counts if `kubebeast eval --follow` has played this very checkpoint, with its scores in `folder`.
    Otherwise, the score is that of the newest episodes of the training until then, with sampled actions and changing
    weights. A weights file has neither.
    """
    scores = {score.env_id: score for score in _of_training(checkpoint)}
    played = score_at(folder, checkpoint.step)
    if played is not None and math.isfinite(played.mean_return) and math.isfinite(played.std_return):
        env_id = played.env or checkpoint.env_spec.env_id
        scores[env_id] = Score(env_id, played.mean_return, played.std_return, played.num_episodes, "evaluation")
    return list(scores.values())


def _of_training(checkpoint: Checkpoint) -> list[Score]:
    found: Any = checkpoint.stats.get("task_returns", {})
    tasks = found if isinstance(found, Mapping) else {}
    scores = []
    for env_id, returns in tasks.items():
        finite = [float(each) for each in returns if math.isfinite(each)]
        if finite:
            mean, std = statistics.fmean(finite), statistics.pstdev(finite)
            scores.append(Score(str(env_id), mean, std, len(finite), "training"))
    return scores
