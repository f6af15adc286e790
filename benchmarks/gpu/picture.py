"""Pictures of the results: shares of the time of each learner, and the learning curve of Pong."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from benchmarks.gpu.pong import Point
from benchmarks.gpu.window import Row, Shares

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#bbbbbb", "#e69f00", "#56b4e9", "#0072b2", "#009e73", "#cc79a7")


def draw_shares(rows: Sequence[Row], shares: Sequence[Shares], path: Path, title: str) -> None:
    """Draws a bar per learner: the time of its training thread, of its inference threads and of its streams."""
    height = 1.2 + 0.35 * len(shares)
    figure, charts = plt.subplots(1, 3, figsize=(14, height), sharey=True, layout="constrained")
    names = [f"{each.variant}: {row.steps_per_s:,.0f} steps/s" for row, each in zip(rows, shares, strict=True)]
    for chart, kind in zip(charts, ("learner", "inference", "streams"), strict=True):
        parts: Sequence[dict[str, float]] = [getattr(each, kind) for each in shares]
        left = [0.0] * len(parts)
        for colour, part in zip(COLOURS, parts[0], strict=False):
            widths = [100 * each[part] for each in parts]
            chart.barh(names, widths, left=left, color=colour, edgecolor="white", label=part)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        chart.set(title=kind, xlim=(0, 100), xlabel="% of its time")
        chart.spines[["top", "right"]].set_visible(False)
        chart.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / height), ncols=3, frameon=False, fontsize=8)
    charts[0].invert_yaxis()
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_pong(points: Sequence[Point], path: Path, title: str) -> None:
    """Draws the mean return of the newest games against minutes."""
    known = [(point.seconds / 60, point.mean_return) for point in points if point.mean_return is not None]
    figure, chart = plt.subplots(figsize=(7, 3), layout="constrained")
    chart.plot([minutes for minutes, _ in known], [value for _, value in known], color=COLOURS[3])
    chart.set(xlabel="minutes", ylabel="mean return", ylim=(-22, 22))
    chart.set_title(title, loc="left", fontsize=10)
    chart.grid(alpha=0.3)
    chart.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
