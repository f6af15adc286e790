"""Thinning and smoothing of series for charts."""

import itertools
from typing import NamedTuple

import numpy as np

from kubebeast_observe.arrays import Values, as_array
from kubebeast_runs.log_table import NewEpisodes

MAX_POINTS = 500
"""Maximum number of points of a line; more are indistinguishable on a page."""
SMOOTHING_SHARE = 0.04
"""Share of a series' points that are averaged into one smoothed value."""


class Band(NamedTuple):
    """Smallest and largest value around each of the N points."""

    xs: Values
    low: Values
    high: Values


def thinned(xs: Values, ys: Values) -> tuple[Values, Values]:
    """Returns the finite points, averaged over neighbors to at most MAX_POINTS."""
    finite = np.isfinite(ys)
    xs, ys = xs[finite], ys[finite]
    if xs.size <= MAX_POINTS:
        return xs, ys
    starts = np.unique(np.linspace(0, xs.size, MAX_POINTS, endpoint=False).astype(int))
    counts = np.diff(np.append(starts, xs.size))
    return np.add.reduceat(xs, starts) / counts, np.add.reduceat(ys, starts) / counts


def smoothed(ys: Values) -> Values:
    """Returns the centered moving mean, over fewer points at both ends."""
    half = max(1, round(ys.size * SMOOTHING_SHARE / 2))
    sums = np.concatenate([[0.0], np.cumsum(ys)])
    indices = np.arange(ys.size)
    low, high = np.maximum(0, indices - half), np.minimum(ys.size, indices + half + 1)
    mean: Values = (sums[high] - sums[low]) / (high - low)
    return mean


def band_of(steps: Values, episodes: NewEpisodes, num_bins: int = 80) -> Band | None:
    """Returns the smallest and largest return of the episodes that ended in each part of the run; None if none did."""
    if not steps.size:
        return None
    counts, lows, highs = map(as_array, (episodes.counts, episodes.lows, episodes.highs))
    edges = np.linspace(steps[0], steps[-1], num_bins + 1)
    bins = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, num_bins - 1)
    points = []
    for _, rows in itertools.groupby(np.flatnonzero(counts > 0), key=bins.__getitem__):
        members = list(rows)
        points.append((steps[members[-1]], lows[members].min(), highs[members].max()))
    return Band(*np.array(points).T) if points else None
