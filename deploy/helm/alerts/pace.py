"""Durations of the rules. The same rules serve a fleet for days and a run on one machine for minutes."""

from collections.abc import Mapping
from string import Template

Pace = Mapping[str, str]
"""Prometheus durations by their name in the rules: "$window" is replaced by that of `window`."""

_DURATIONS = {
    "demand": ("2m", "15s"),  # averaging window of the learner's demand
    "window": ("10m", "20s"),  # window of other means and increases
    "long": ("30m", "30s"),  # as window, for rare events
    "history": ("6h", "10m"),  # time over which a run is compared with itself
    "resolution": ("1m", "5s"),  # step of that history
    "stall": ("1h", "20s"),  # longest time without progress
    "loop": ("1h", "10m"),  # window in which restarts count as a loop
    "quick": ("5m", "10s"),  # duration of a condition if every minute counts
    "calm": ("10m", "10s"),  # as quick, for conditions that may pass while a fleet starts
    "patient": ("15m", "10s"),  # as quick, for conditions that only cost speed
    "lenient": ("30m", "15s"),  # as quick, for conditions that only cost money
}
CHART: Pace = {name: chart for name, (chart, _) in _DURATIONS.items()}
"""Durations for a cluster that is scraped every 15 seconds: transient conditions do not fire."""
LOCAL: Pace = {name: local for name, (_, local) in _DURATIONS.items()}
"""Durations for a run on one machine that is scraped every second: a cause shows within a minute."""


def fill(text: str, pace: Pace) -> str:
    """Fills in the durations. Other names after a dollar sign are for Prometheus and stay."""
    return Template(text).safe_substitute(pace)
