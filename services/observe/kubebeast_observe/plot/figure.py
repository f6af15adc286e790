"""Picture of learning curves: return against env-steps on the left, against time on the right."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from kubebeast_observe.arrays import Values
from kubebeast_observe.plot.curve import Curve
from kubebeast_observe.plot.group import Group, mean_and_std

# Distinguishable to color-blind readers: Okabe and Ito 2008, https://jfly.uni-koeln.de/color; its yellow is too light
# for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", ":", "-.")
GREY = "#555555"
LEGEND_CHARACTERS = 110
"""Number of characters that fit into one line of the legend."""


def draw(groups: Sequence[Group], path: Path, *, threshold: float | None = None, title: str = "") -> None:
    """Writes both views side by side; every curve of `groups` has at least one point.

    A group of several runs has a thin line per run, their mean, and a band of one standard deviation.

    Args:
        path: Output file, in the format of its extension. Raises ValueError for a format unknown to matplotlib.
        threshold: Return to mark.
    """
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    by_steps, by_time = figure.subplots(1, 2, sharey=True)
    longest_hours = max(curve.hours[-1] for group in groups for curve in group.curves)
    unit, per_hour = ("hours", 1.0) if longest_hours >= 1 else ("minutes", 60.0)
    for number, group in enumerate(groups):
        style: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": LINE_STYLES[number // len(COLOURS) % len(LINE_STYLES)],
        }
        _draw_group(by_steps, group, lambda curve: curve.steps, style)
        _draw_group(by_time, group, lambda curve: curve.hours * per_hour, style)
    by_steps.xaxis.set_major_formatter(EngFormatter(sep=""))
    by_steps.set_ylabel("mean episode return", color=GREY)
    for axes, label in ((by_steps, "env-steps"), (by_time, unit)):
        _dress(axes, label, threshold)
    heading = title or (groups[0].label if len(groups) == 1 else "")
    if heading:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=12)
    if len(groups) > 1 or len(groups[0].curves) > 1:
        _add_legend(figure, by_steps)
    figure.savefig(path, dpi=150)


def _draw_group(axes: Axes, group: Group, x_of: Callable[[Curve], Values], style: dict[str, Any]) -> None:
    xs = [x_of(curve) for curve in group.curves]
    ys = [curve.returns for curve in group.curves]
    if len(xs) == 1:
        axes.plot(xs[0], ys[0], linewidth=1.6, label=group.label, **style)
        return
    for x, y in zip(xs, ys, strict=True):
        axes.plot(x, y, linewidth=0.6, alpha=0.45, **style)
    grid, mean, std = mean_and_std(xs, ys)
    axes.fill_between(grid, mean - std, mean + std, color=style["color"], alpha=0.18, linewidth=0)
    label = f"{group.label}: mean of {len(xs)} runs, band of ±1 standard deviation"
    axes.plot(grid, mean, linewidth=2.0, label=label, **style)


def _dress(axes: Axes, label: str, threshold: float | None) -> None:
    axes.set_xlabel(label, color=GREY)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=GREY, labelleft=True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#aaaaaa")
    if threshold is not None:
        axes.axhline(threshold, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
        axes.annotate(
            f"{threshold:g}", (1, threshold), xycoords=axes.get_yaxis_transform(), xytext=(3, 0),
            textcoords="offset points", va="center", color=GREY, fontsize=9,
        )  # fmt: skip


def _add_legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=max(1, min(len(labels), LEGEND_CHARACTERS // (max(map(len, labels)) + 6))),
        frameon=False,
        labelcolor="linecolor",
    )
