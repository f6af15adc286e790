"""Series made small and calm enough to be drawn."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubebeast_learner.run.log_table import Values

MAX_POINTS = 500
"""Points of a line: more cannot be told apart on a page."""
SMOOTHING_SHARE = 0.04
"""Of a series' points that one smoothed value is the mean of."""


class Band(NamedTuple):
    """Smallest and largest value around each of the N points."""

    xs: Values
    low: Values
    high: Values


def thinned(xs: Values, ys: Values) -> tuple[Values, Values]:
    """The finite points, averaged in neighbours to at most MAX_POINTS."""
    finite = np.isfinite(ys)
    xs, ys = xs[finite], ys[finite]
    if xs.size <= MAX_POINTS:
        return xs, ys
    starts = np.unique(np.linspace(0, xs.size, MAX_POINTS, endpoint=False).astype(int))
    counts = np.diff(np.append(starts, xs.size))
    return np.add.reduceat(xs, starts) / counts, np.add.reduceat(ys, starts) / counts


def smoothed(ys: Values) -> Values:
    """Centred moving mean, over fewer points at both ends."""
    half = max(1, round(ys.size * SMOOTHING_SHARE / 2))
    sums = np.concatenate([[0.0], np.cumsum(ys)])
    indices = np.arange(ys.size)
    low, high = np.maximum(0, indices - half), np.minimum(ys.size, indices + half + 1)
    mean: Values = (sums[high] - sums[low]) / (high - low)
    return mean


def band_of(steps: Values, episodes: Sequence[Sequence[float]], num_bins: int = 80) -> Band | None:
    """Smallest and largest return of the episodes that ended in each part of the run; None where none did."""
    if not steps.size:
        return None
    edges = np.linspace(steps[0], steps[-1], num_bins + 1)
    bins = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, num_bins - 1)
    points = []
    for _, rows in itertools.groupby((row for row, returns in enumerate(episodes) if returns), key=bins.__getitem__):
        members = list(rows)
        returns = [value for row in members for value in episodes[row]]
        points.append((steps[members[-1]], min(returns), max(returns)))
    return Band(*np.array(points).T) if points else None
