"""Pictures of the curves: a chart per task, a color per system."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from benchmarks.learning.runs import Point

mpl.use("Agg")
from matplotlib import pyplot as plt

Curves = Mapping[str, Mapping[str, Sequence[Sequence[Point]]]]
"""The curves of the seeds by task and system."""

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
X_LABELS = {"step": "env-steps", "minutes": "minutes", "cpu_minutes": "CPU minutes"}
MOST_COLUMNS = 4


def draw(curves: Curves, x: str, path: Path) -> None:
    """Draws the mean return of every seed against `x`, one of X_LABELS."""
    columns = min(MOST_COLUMNS, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure, charts = plt.subplots(
        rows, columns, figsize=(3.4 * columns, 2.6 * rows), squeeze=False, layout="constrained"
    )
    systems = list(dict.fromkeys(system for of_task in curves.values() for system in of_task))
    for chart, (task, of_task) in zip(charts.flat, curves.items(), strict=False):
        for system, seeds in of_task.items():
            color = COLORS[systems.index(system) % len(COLORS)]
            for index, curve in enumerate(seeds):
                known = [point for point in curve if point.episodes]
                chart.plot(
                    [getattr(point, x) for point in known],
                    [point.mean_return for point in known],
                    color=color,
                    alpha=0.7,
                    label="" if index else system,
                )
        chart.set_title(task, loc="left", fontsize=10)
        chart.set_xlabel(X_LABELS[x], fontsize=8)
        chart.grid(alpha=0.3)
        chart.spines[["top", "right"]].set_visible(False)
    for chart in charts.flat[len(curves) :]:
        chart.set_visible(False)
    handles = {
        label: handle for chart in charts.flat for handle, label in zip(*chart.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(systems), frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
