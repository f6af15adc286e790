"""How long rules look back and wait. The same rules serve a fleet for days and a run on one machine for minutes."""

from dataclasses import asdict, dataclass
from string import Template


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Durations of Prometheus. A rule names them: "$window" stands for the field."""

    demand: str
    """What the demand of the learner is averaged over."""
    window: str
    """What other means and increases are taken over."""
    long: str
    """As window, for what happens rarely."""
    history: str
    """How far back a run is compared with itself."""
    resolution: str
    """Between the points of that history."""
    stall: str
    """How long a run may go without progress."""
    loop: str
    """Within what time restarts count as a loop."""
    quick: str
    """How long a condition must hold: when every minute counts."""
    calm: str
    """As quick, when it may pass while a fleet starts."""
    patient: str
    """As quick, when it costs speed only."""
    lenient: str
    """As quick, when it costs money only."""

    def fill(self, text: str) -> str:
        """The text with its durations. Other names after a dollar sign are for Prometheus and stay."""
        return Template(text).safe_substitute(asdict(self))


CHART = Pace(
    demand="2m",
    window="10m",
    long="30m",
    history="6h",
    resolution="1m",
    stall="1h",
    loop="1h",
    quick="5m",
    calm="10m",
    patient="15m",
    lenient="30m",
)
"""Of a cluster that is scraped every 15 seconds: what passes by itself wakes nobody."""

LOCAL = Pace(
    demand="15s",
    window="20s",
    long="30s",
    history="10m",
    resolution="5s",
    stall="20s",
    loop="10m",
    quick="10s",
    calm="10s",
    patient="10s",
    lenient="15s",
)
"""Of a run on one machine that is scraped every second: a cause shows within a minute."""
