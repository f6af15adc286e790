"""Picture of a sweep: scores in the order of the trials, importances, and parallel coordinates."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from kubebeast_observe.numbers import short_text
from kubebeast_sweep.plan import Plan
from kubebeast_sweep.results.files import score_of
from kubebeast_sweep.space import to_setting
from kubebeast_sweep.trials.study import Study

GREY, BLUE = "#555555", "#0072B2"
_COLOURS = colormaps["viridis"]
_MARKERS = {TrialState.COMPLETE: ("o", "done"), TrialState.PRUNED: ("x", "pruned")}


def draw(plan: Plan, study: Study, path: Path, title: str) -> bool:
    """Writes the picture, and returns True; returns False if no trial has a score yet. Raises OSError."""
    trials = [each for each in study.trials() if each.state in _MARKERS and score_of(each) is not None]
    if not trials:
        return False
    figure = Figure(figsize=(12, 8), layout="constrained")
    grid = figure.add_gridspec(2, 1, height_ratios=(1, 1.1))
    above, below = (figure.add_subfigure(grid[row]) for row in range(2))
    scores, bars = above.subplots(1, 2, width_ratios=(1.6, 1))
    _draw_scores(scores, plan, trials)
    _draw_importances(bars, study.importances())
    _draw_parallel(below.subplots(), plan, trials)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    figure.savefig(path, dpi=130)
    return True


def _draw_scores(axes: Axes, plan: Plan, trials: Sequence[FrozenTrial]) -> None:
    for state, (marker, label) in _MARKERS.items():
        found = [each for each in trials if each.state == state]
        colour = BLUE if state == TrialState.COMPLETE else GREY
        axes.scatter([each.number for each in found], _scores(found), marker=marker, color=colour, s=24, label=label)
    complete = [each for each in trials if each.state == TrialState.COMPLETE]
    if complete:
        best = np.maximum if plan.direction == "maximize" else np.minimum
        axes.step([each.number for each in complete], best.accumulate(_scores(complete)), where="post", color=BLUE)
    if plan.goal is not None:
        axes.axhline(plan.goal, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    axes.set_xlabel("trial", color=GREY)
    axes.set_ylabel(plan.score, color=GREY)
    axes.legend(frameon=False, loc="lower right")
    dress(axes)


def _draw_importances(axes: Axes, importances: Mapping[str, float]) -> None:
    names = list(importances)[::-1]
    axes.barh(names, [importances[name] for name in names], height=0.5, color=BLUE)
    axes.set_xlabel("share in the differences of the scores", color=GREY)
    if not names:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "too few different scores", ha="center", color=GREY, transform=axes.transAxes)
    dress(axes)


def _draw_parallel(axes: Axes, plan: Plan, trials: Sequence[FrozenTrial]) -> None:
    """Draws a line for each trial through its parameters and its score, which is also its color."""
    names = list(plan.space)
    scores = _scores(trials)
    norm = Normalize(float(scores.min()), float(scores.max()))
    columns = [_heights(plan.space[name], [each.params[name] for each in trials]) for name in names]
    points = np.stack([*columns, norm(scores).filled(0.5)], axis=1)
    order = np.argsort(scores if plan.direction == "maximize" else -scores)
    lines = [np.column_stack([np.arange(len(names) + 1), points[row]]) for row in order]
    is_done = [trials[row].state == TrialState.COMPLETE for row in order]
    widths, opacity = [1.8 if done else 0.8 for done in is_done], [0.9 if done else 0.4 for done in is_done]
    axes.add_collection(
        LineCollection(lines, colors=_COLOURS(norm(scores[order])), linewidths=widths, alpha=np.array(opacity))
    )
    axes.set_xlim(-0.3, len(names) + 0.3)
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([])
    axes.set_xticks(range(len(names) + 1), [*names, plan.score])
    axes.tick_params(length=0, labelcolor=GREY)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    for place, name in enumerate(names):
        _draw_axis(axes, place, _marks(plan.space[name]))
    ends = ((0.0, short_text(float(scores.min()), 4)), (1.0, short_text(float(scores.max()), 4)))
    _draw_axis(axes, len(names), ends)


def _draw_axis(axes: Axes, place: int, marks: Sequence[tuple[float, str]]) -> None:
    axes.axvline(place, color="#bbbbbb", linewidth=1, zorder=0)
    for height, text in marks:
        axes.annotate(text, (place, height), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def _heights(distribution: Any, values: Sequence[Any]) -> NDArray[np.float64]:
    """Returns the places of values on the axis of a parameter, from 0 to 1."""
    if isinstance(distribution, CategoricalDistribution):
        places = [distribution.choices.index(value) for value in values]
        return np.array(places) / max(1, len(distribution.choices) - 1)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    scale = math.log if distribution.log else float
    low, high = scale(distribution.low), scale(distribution.high)
    return np.array([(scale(value) - low) / ((high - low) or 1.0) for value in values])


def _marks(distribution: Any) -> list[tuple[float, str]]:
    """Returns place and text of the marks of an axis."""
    if isinstance(distribution, CategoricalDistribution):
        shown = [str(to_setting(choice)) for choice in distribution.choices]
        return list(zip(_heights(distribution, distribution.choices).tolist(), shown, strict=True))
    return [(0.0, short_text(distribution.low)), (1.0, short_text(distribution.high))]


def _scores(trials: Sequence[FrozenTrial]) -> NDArray[np.float64]:
    return np.array([score_of(each) for each in trials], dtype=np.float64)


def dress(axes: Axes) -> None:
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=GREY)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#aaaaaa")
