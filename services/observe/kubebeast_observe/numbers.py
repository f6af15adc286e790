"""Sums, means and texts of numbers that may be unknown."""

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """Returns the sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def number_text(value: float | None, spec: str = ",.0f") -> str:
    return "-" if value is None else format(value, spec)


def short_text(value: float | None, digits: int = 3) -> str:
    """Formats a number as 12.4k, 0.0123 or 3e-05; "-" if it is unknown. digits: significant digits below 100."""
    if value is None:
        return "-"
    if abs(value) >= 10_000:
        return scaled_text(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def scaled_text(value: float) -> str:
    """Formats a large number with an SI prefix and at most one decimal: 12.4k, 3M, 1.5G."""
    for prefix, size in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)):
        text = f"{value / size:.1f}".removesuffix(".0")
        if abs(float(text)) < 1000:
            return text + prefix
    return f"{value:.1e}"


def age_text(age_s: float) -> str:
    """Formats an age in its largest unit only: 59s, 12m, 47h, 9d."""
    for unit, seconds, until_s in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if age_s < until_s:
            return f"{age_s // seconds:.0f}{unit}"
    return f"{age_s // 86_400:.0f}d"


def time_text(seconds: float | None) -> str:
    """Formats a time with three digits and a suitable unit: 250 µs, 1.25 ms, 12.5 s; "-" if it is unknown."""
    if seconds is None:
        return "-"
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def _three_digits(value: float) -> str:
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
