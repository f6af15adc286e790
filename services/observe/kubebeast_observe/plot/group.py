"""Groups of runs that differ only in their seed: one line with a spread, under a distinguishing label."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubebeast_observe.arrays import Values
from kubebeast_observe.plot.curve import Curve

WATCHING_SETTINGS = {
    *("checkpoint_interval_minutes", "keep_checkpoints", "keep_best", "best_by", "best_evaluator"),
    *("log_interval_s", "profile", "progress"),
}
"""Settings that affect the records of a run, not its training."""
NOT_COMPARED = {"seed", "xpid", "savedir", "address", "pipes_basename"} | WATCHING_SETTINGS
GRID_POINTS = 400
MAX_LABEL_SETTINGS = 4

_AUTOMATIC_XPID = re.compile(r"(kube|torch)beast-\d{8}-\d{6}")
_SEED_TAIL = re.compile(r"[-_.]*(seed|run)?[-_.]*$")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Runs with the same settings, in the order of the command line."""

    label: str
    curves: Sequence[Curve]


def group_curves(curves: Sequence[Curve]) -> list[Group]:
    """Groups runs with equal settings, except for NOT_COMPARED; a run without settings stays alone."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        key = curve.name if curve.settings is None else repr(sorted(_compared(curve.settings).items()))
        groups.setdefault(key, []).append(curve)
    members = list(groups.values())
    return [Group(label, runs) for label, runs in zip(_labels(members), members, strict=True)]


def mean_and_std(xs: Sequence[Values], ys: Sequence[Values]) -> tuple[Values, Values, Values]:
    """Returns grid, mean and (population) standard deviation over series that are linear between their points.

    xs, ys: float64 [N_i] for each series, xs increasing. The grid has GRID_POINTS points over the span that all series
    cover; it is empty if there is none.
    """
    start, end = max(x[0] for x in xs), min(x[-1] for x in xs)
    grid = np.linspace(start, end, GRID_POINTS) if start < end else np.empty(0)
    values = np.stack([np.interp(grid, x, y) for x, y in zip(xs, ys, strict=True)])
    return grid, values.mean(axis=0), values.std(axis=0)


def _compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_COMPARED}


def _labels(groups: Sequence[Sequence[Curve]]) -> list[str]:
    """Returns the common part of the runs' names if they were set by users, else the settings that differ."""
    names = [_common_name([curve.name for curve in curves]) for curves in groups]
    if all(names) and len(set(names)) == len(names):
        return names
    settings = [_compared(curves[0].settings or {}) for curves in groups]
    shared = set.intersection(*(set(one) for one in settings))
    differing = sorted(name for name in shared if len({repr(one[name]) for one in settings}) > 1)
    labels = [", ".join(f"{name}={one[name]}" for name in differing[:MAX_LABEL_SETTINGS]) for one in settings]
    if len(set(labels)) == len(labels) and all(labels):
        return labels
    return [curves[0].name for curves in groups]


def _common_name(names: Sequence[str]) -> str:
    """Returns the common part of the names; "" if they were made from the date or have nothing in common."""
    if any(_AUTOMATIC_XPID.fullmatch(name) for name in names):
        return ""
    if len(names) == 1:
        return names[0]
    start = _common_start(names)
    rests = [name[len(start) :] for name in names]
    end = _common_start([rest[::-1] for rest in rests])[::-1]
    return (_SEED_TAIL.sub("", start) + end).strip("-_.")


def _common_start(names: Sequence[str]) -> str:
    columns = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    return "".join(column[0] for column in columns)
