"""How long rules look back and wait. The same rules serve a fleet for days and a run on one machine for minutes."""

from collections.abc import Mapping
from string import Template

Pace = Mapping[str, str]
"""Durations of Prometheus by the name that rules call them by: "$window" stands for that of `window`."""

_DURATIONS = {
    "demand": ("2m", "15s"),  # what the demand of the learner is averaged over
    "window": ("10m", "20s"),  # what other means and increases are taken over
    "long": ("30m", "30s"),  # as window, for what happens rarely
    "history": ("6h", "10m"),  # how far back a run is compared with itself
    "resolution": ("1m", "5s"),  # between the points of that history
    "stall": ("1h", "20s"),  # how long a run may go without progress
    "loop": ("1h", "10m"),  # within what time restarts count as a loop
    "quick": ("5m", "10s"),  # how long a condition must hold: when every minute counts
    "calm": ("10m", "10s"),  # as quick, when it may pass while a fleet starts
    "patient": ("15m", "10s"),  # as quick, when it costs speed only
    "lenient": ("30m", "15s"),  # as quick, when it costs money only
}
CHART: Pace = {name: chart for name, (chart, _) in _DURATIONS.items()}
"""Of a cluster that is scraped every 15 seconds: what passes by itself wakes nobody."""
LOCAL: Pace = {name: local for name, (_, local) in _DURATIONS.items()}
"""Of a run on one machine that is scraped every second: a cause shows within a minute."""


def fill(text: str, pace: Pace) -> str:
    """The text with its durations. Other names after a dollar sign are for Prometheus and stay."""
    return Template(text).safe_substitute(pace)
