"""One chart as inline SVG. Colours are the page's, so that it is right by day, by night and on paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from kubebeast_learner.report.log_table import Values
from kubebeast_learner.report.markup import Element, element
from kubebeast_learner.report.series import Band, smoothed, thinned

LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 10.0, 26.0
"""Margins around the plot for labels, in units of the picture."""
NOISY = 40
"""Points from which a line is drawn smoothed, its values faint behind it."""
OUTLIERS_PERCENT = 0.5
"""Values at each end that do not widen a noisy chart."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    name: str
    xs: Values
    ys: Values
    is_smooth: bool = False
    """Whether the values are means already."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps [low, high] of the data to [start, end] of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: Values) -> Values:
        mapped: Values = self.start + (values - self.low) / (self.high - self.low) * (self.end - self.start)
        return mapped


def draw_chart(
    lines: Sequence[Line], *, size: tuple[int, int], label: str, band: Band | None = None, unit_range: bool = False
) -> Element:
    """size: width and height. label: read out to those who cannot see it. unit_range: show [0, 1], whatever the data.

    Every line has at least one finite point.
    """
    width, height = size
    drawn = [(line, *thinned(line.xs, line.ys)) for line in lines]
    xs = np.concatenate([line_xs for _, line_xs, _ in drawn])
    low, high = (0.0, 1.0) if unit_range else _y_range([ys for _, _, ys in drawn], band)
    x_of = Scale(0.0, float(xs.max()) or 1.0, LEFT, width - RIGHT)
    y_of = Scale(low, high, height - BOTTOM, TOP)
    plot = element(
        "svg", _band(band, x_of, y_of), [_line(number, *one, x_of, y_of) for number, one in enumerate(drawn)],
        x=LEFT, y=TOP - 2, width=width - LEFT - RIGHT + 4, height=height - TOP - BOTTOM + 4,
        viewBox=f"{LEFT} {TOP - 2} {width - LEFT - RIGHT + 4} {height - TOP - BOTTOM + 4}",
    )  # fmt: skip
    axes = [_y_axis(y_of, width), _x_axis(x_of, height)]
    return element("svg", axes, plot, viewBox=f"0 0 {width} {height}", role="img", aria_label=label, class_="chart")


def number_text(value: float, digits: int = 3) -> str:
    """A number as people write it: 12.4k, 0.0123, 3e-05. digits: of numbers below 100."""
    if abs(value) >= 10_000:
        return EngFormatter(places=1, sep="")(value).replace(".0", "")
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def _y_range(series: Sequence[Values], band: Band | None) -> tuple[float, float]:
    """Limits that show the data, without what only few points reach."""
    cuts = [(OUTLIERS_PERCENT, 100 - OUTLIERS_PERCENT) if ys.size > NOISY else (0, 100) for ys in series]
    parts = [np.percentile(ys, cut) for ys, cut in zip(series, cuts, strict=True)]
    if band is not None:
        parts += [np.percentile(band.low, (2, 100)), np.percentile(band.high, (0, 98))]
    low, high = float(min(part.min() for part in parts)), float(max(part.max() for part in parts))
    if low >= 0 and low < 0.5 * high:
        low = 0.0
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return (low if low == 0 else low - margin), high + margin


def _line(number: int, line: Line, xs: Values, ys: Values, x_of: Scale, y_of: Scale) -> list[Element]:
    if xs.size == 1:
        return [element("circle", cx=_n(x_of(xs)[0]), cy=_n(y_of(ys)[0]), r=3, class_=f"dot c{number}")]
    if line.is_smooth or xs.size < NOISY:
        return [element("path", d=_path(x_of(xs), y_of(ys)), class_=f"line c{number}")]
    return [
        element("path", d=_path(x_of(xs), y_of(ys)), class_=f"raw c{number}"),
        element("path", d=_path(x_of(xs), y_of(smoothed(ys))), class_=f"line c{number}"),
    ]


def _band(band: Band | None, x_of: Scale, y_of: Scale) -> Element | None:
    if band is None or band.xs.size < 2:
        return None
    xs = x_of(np.concatenate([band.xs, band.xs[::-1]]))
    return element("path", d=_path(xs, y_of(np.concatenate([band.high, band.low[::-1]]))) + "Z", class_="band c0")


def _y_axis(y_of: Scale, width: float) -> list[Element]:
    parts = []
    for tick in _ticks(y_of, 4):
        y = _n(y_of(np.array([tick]))[0])
        parts.append(element("line", x1=LEFT, x2=width - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(element("text", number_text(tick, digits=4), x=LEFT - 8, y=y, dy="0.32em", text_anchor="end"))
    return parts


def _x_axis(x_of: Scale, height: float) -> list[Element]:
    labels = EngFormatter(sep="")
    marks = _ticks(x_of, 6 if x_of.end > 500 else 4)
    ends = [
        "end" if x_of(np.array([mark]))[0] > x_of.end - 12 else "start" if mark == 0 else "middle" for mark in marks
    ]
    return [
        element("text", labels(mark), x=_n(x_of(np.array([mark]))[0]), y=height - 8, text_anchor=end)
        for mark, end in zip(marks, ends, strict=True)
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
    """A tenth of a unit is a fraction of a pixel."""
    return f"{value:.1f}"
