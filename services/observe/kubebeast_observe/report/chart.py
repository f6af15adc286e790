"""Charts as the parts of an inline SVG, drawn by page.html.

Colors are defined by the page, for light and dark mode and for print.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from kubebeast_observe.arrays import Values
from kubebeast_observe.numbers import short_text
from kubebeast_observe.report.series import Band, smoothed, thinned

LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 10.0, 26.0
"""Margins around the plot for labels, in units of the picture."""
NOISY = 40
"""Number of points from which a line is smoothed, with its raw values faint behind it."""
OUTLIERS_PERCENT = 0.5
"""Percentage of values at each end that do not widen a noisy chart."""

Number = TypeVar("Number", float, Values)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    name: str
    xs: Values
    ys: Values
    is_smooth: bool = False
    """True if the values are means already."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map of [low, high] of the data to [start, end] of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: Number) -> Number:
        return self.start + (values - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """One chart. Positions are in units of the picture; numbers of paths and ticks are rounded to a tenth."""

    width: int
    height: int
    label: str
    """Accessible name, for screen readers."""
    y_ticks: list[tuple[str, str]]
    """Position and text."""
    x_ticks: list[tuple[str, str, str]]
    """Position, text, and text anchor."""
    paths: list[tuple[str, str]]
    """SVG path data and CSS class."""
    dots: list[tuple[str, str, str]]
    """x, y and CSS class."""

    left = LEFT

    @property
    def right(self) -> float:
        return self.width - RIGHT

    @property
    def plot(self) -> tuple[float, float, float, float]:
        """Returns the clipping area of lines: x, y, width, height."""
        return LEFT, TOP - 2, self.width - LEFT - RIGHT + 4, self.height - TOP - BOTTOM + 4


def make_chart(
    lines: Sequence[Line], *, size: tuple[int, int], label: str, band: Band | None = None, unit_range: bool = False
) -> Chart:
    """Makes a chart; every line has at least one finite point.

    Args:
        size: Width and height.
        unit_range: If set, the y-axis is [0, 1] for any data.
    """
    width, height = size
    drawn = [(line, *thinned(line.xs, line.ys)) for line in lines]
    xs = np.concatenate([line_xs for _, line_xs, _ in drawn])
    low, high = (0.0, 1.0) if unit_range else _y_range([ys for _, _, ys in drawn], band)
    x_of = Scale(0.0, float(xs.max()) or 1.0, LEFT, width - RIGHT)
    y_of = Scale(low, high, height - BOTTOM, TOP)
    paths, dots = _band(band, x_of, y_of), []
    for number, (line, line_xs, ys) in enumerate(drawn):
        if line_xs.size == 1:
            dots.append((_n(x_of(line_xs)[0]), _n(y_of(ys)[0]), f"dot c{number}"))
            continue
        is_noisy = not line.is_smooth and line_xs.size >= NOISY
        paths += [(_path(x_of(line_xs), y_of(ys)), f"raw c{number}")] if is_noisy else []
        paths.append((_path(x_of(line_xs), y_of(smoothed(ys) if is_noisy else ys)), f"line c{number}"))
    return Chart(
        width=width,
        height=height,
        label=label,
        y_ticks=[(_n(y_of(tick)), short_text(tick, digits=4)) for tick in _ticks(y_of, 4)],
        x_ticks=_x_ticks(x_of),
        paths=paths,
        dots=dots,
    )


def _y_range(series: Sequence[Values], band: Band | None) -> tuple[float, float]:
    """Returns limits that show the data without outliers."""
    cuts = [(OUTLIERS_PERCENT, 100 - OUTLIERS_PERCENT) if ys.size > NOISY else (0, 100) for ys in series]
    parts = [np.percentile(ys, cut) for ys, cut in zip(series, cuts, strict=True)]
    if band is not None:
        parts += [np.percentile(band.low, (2, 100)), np.percentile(band.high, (0, 98))]
    low, high = float(min(part.min() for part in parts)), float(max(part.max() for part in parts))
    if low >= 0 and low < 0.5 * high:
        low = 0.0
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return (low if low == 0 else low - margin), high + margin


def _band(band: Band | None, x_of: Scale, y_of: Scale) -> list[tuple[str, str]]:
    if band is None or band.xs.size < 2:
        return []
    xs = x_of(np.concatenate([band.xs, band.xs[::-1]]))
    return [(_path(xs, y_of(np.concatenate([band.high, band.low[::-1]]))) + "Z", "band c0")]


def _x_ticks(x_of: Scale) -> list[tuple[str, str, str]]:
    labels = EngFormatter(sep="")
    marks = [(mark, x_of(mark)) for mark in _ticks(x_of, 6 if x_of.end > 500 else 4)]
    return [
        (_n(x), labels(mark), "end" if x > x_of.end - 12 else "start" if mark == 0 else "middle") for mark, x in marks
    ]


def _ticks(scale: Scale, number: int) -> list[float]:
    ticks = MaxNLocator(number, steps=[1, 2, 2.5, 5, 10]).tick_values(scale.low, scale.high)
    slack = 1e-9 * (scale.high - scale.low)
    return [
        0.0 if math.isclose(t, 0, abs_tol=slack) else float(t)
        for t in ticks
        if scale.low - slack <= t <= scale.high + slack
    ]


def _path(xs: Values, ys: Values) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in zip(xs, ys, strict=True))


def _n(value: float) -> str:
    return f"{value:.1f}"
