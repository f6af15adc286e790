"""Statistics of the curves: means of parts of a run, and interquartile means with bootstrap intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.learning.runs import Point

NUM_DRAWS = 2000
"""Samples of the bootstrap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One system on one task: returns are means over the seeds."""

    task: str
    system: str
    steps: int
    """Env-steps of a run."""
    seeds: int
    first_fifth: float
    last_fifth: float
    standard_error: float | None
    """Standard error of last_fifth over the seeds; None for a single one."""
    minutes: float
    cpu_minutes: float


def mean_of_part(curve: Sequence[Point], first: float, last: float) -> float:
    """Returns the mean return of the episodes that ended between two shares of the run; NaN without any."""
    total = curve[-1].step if curve else 0
    part = [p for p in curve if first * total < p.step <= last * total and p.episodes]
    weights = [p.episodes for p in part]
    return float(np.average([p.mean_return for p in part], weights=weights)) if part else math.nan


def summarise(task: str, system: str, curves: Sequence[Sequence[Point]]) -> Row:
    lasts = [mean_of_part(curve, 0.8, 1.0) for curve in curves]
    spread = float(np.std(lasts, ddof=1) / math.sqrt(len(lasts))) if len(lasts) > 1 else None
    return Row(
        task=task,
        system=system,
        steps=curves[0][-1].step,
        seeds=len(curves),
        first_fifth=float(np.mean([mean_of_part(curve, 0.0, 0.2) for curve in curves])),
        last_fifth=float(np.mean(lasts)),
        standard_error=spread,
        minutes=float(np.mean([curve[-1].minutes for curve in curves])),
        cpu_minutes=float(np.mean([curve[-1].cpu_minutes for curve in curves])),
    )


def interquartile_mean(scores: Sequence[float]) -> float:
    """Returns the mean of the middle half, with shares of the scores at its edges (arXiv:2108.13264)."""
    values = np.sort(np.asarray(scores, dtype=np.float64))
    count = len(values)
    edges = np.arange(count + 1).clip(count / 4, 3 * count / 4)
    return float(np.diff(edges) @ values / (count / 2))


def interval(scores: Mapping[str, Sequence[float]], confidence: float = 0.95) -> tuple[float, float]:
    """Returns a percentile interval of the interquartile mean over tasks and seeds.

    Seeds are drawn anew within each task (stratified bootstrap, arXiv:2108.13264).

    Args:
        scores: The scores of the seeds by task.
    """
    random = np.random.default_rng(0)
    draws = [
        interquartile_mean([s for of_task in scores.values() for s in random.choice(of_task, len(of_task))])
        for _ in range(NUM_DRAWS)
    ]
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
