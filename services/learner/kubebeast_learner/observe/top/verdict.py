"""Who holds whom up: the one model behind `kubebeast top`, the dashboard's verdict and the autoscalers.

Each stage has a load, the share of its time that it works. A fleet can grow until the busiest stage has no time left,
and can do without the streams that are held back:

    demand ratio = (1 - parked) / max(loads)

docs/monitoring.md derives it and explains the thresholds. The same in PromQL is deploy/helm/dashboard/promql.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

STARVED = 0.25
"""Share of time without rollouts from which the learner counts as starved."""
PARKED = 0.25
"""Share of time behind a full rollout queue from which streams count as held back."""
LIMIT = 0.75
"""Load from which a stage counts as the limit of what waits for it."""
OLD_UPDATES = 20.0
"""Policy lag at which data are old: from here on a larger fleet makes worse data instead of more."""
MIN_LOAD = 0.1
"""What is measured at lower loads says little: nobody asks for more than ten times the present fleet."""

Stage = Literal["cpu", "inference", "learner", "lag"]
Loads = Mapping[Stage, float]
"""In [0, 1]; what is not known is left out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    code: Literal[
        "fleet",
        "cpu",
        "inference",
        "learner",
        "lag",
        "queue",
        "balanced",
        "no-streams",
        "paused",
        "finished",
        "unknown",
    ]
    """What holds the others up."""
    text: str
    advice: str
    """What would help; "" where nothing needs to."""


FINISHED = Verdict("finished", "trained to the end", "")
NO_STREAMS = Verdict("no-streams", "no env-server is connected", "look at the env-servers' logs")
FLEET = Verdict("fleet", "the fleet starves the learner", "more or faster env-servers would be used")
BALANCED = Verdict("balanced", "balanced", "")
UNKNOWN = Verdict("unknown", "not known yet", "")
# The first of the busiest is named: what a full machine slows down looks busy, too.
LIMITS: Mapping[Stage, Verdict] = {
    "cpu": Verdict("cpu", "the learner's CPUs are the limit", "more CPUs or fewer env-servers beside it would help"),
    "inference": Verdict(
        "inference",
        "inference is the limit",
        "more env-servers would only wait: a GPU, a smaller model or larger batches would help",
    ),
    "learner": Verdict("learner", "the learner holds the fleet back", "env-servers wait: fewer would do as much"),
}
QUEUE = Verdict(
    "queue",
    "a full rollout queue holds streams back, and the learner waits",
    "a larger max_learner_queue_size lets more environments play; of several tasks the slowest needs more env-servers",
)
LAG = Verdict("lag", "the data are old", "fewer environments or a larger batch_size would make them fresher")


def make_loads(
    *,
    starved_ratio: float | None,
    inference_busy_ratio: float | None,
    cpu_busy_ratio: float | None,
    policy_lag_updates: float | None,
) -> Loads:
    """All ratios lie in [0, 1]; None where they are not known."""
    known: dict[Stage, float | None] = {
        "cpu": cpu_busy_ratio,
        "inference": inference_busy_ratio,
        "learner": None if starved_ratio is None else 1 - starved_ratio,
        "lag": None if policy_lag_updates is None else policy_lag_updates / OLD_UPDATES,
    }
    return {stage: min(load, 1.0) for stage, load in known.items() if load is not None}


def demand_ratio(loads: Loads, parked_ratio: float) -> float:
    """How many times the present fleet could be used, at most 10."""
    return (1 - parked_ratio) / max([MIN_LOAD, *loads.values()])


def paused(groups: Sequence[str]) -> Verdict:
    """Of a fleet of which nothing is wanted; groups: what it can be scaled by."""
    commands = ", ".join(f"kubebeast fleet scale {group} REPLICAS" for group in groups)
    return Verdict("paused", "the fleet is scaled to zero", f"it comes back with {commands}")


def judge(
    *,
    is_finished: bool,
    streams: float | None,
    loads: Loads,
    parked_ratio: float | None,
    paused_groups: Sequence[str] = (),
) -> Verdict:
    """parked_ratio: None where it is not known. paused_groups: all groups of env-servers, where each is scaled to zero.

    What nobody measures cannot be the limit: an unknown load is left out.
    """
    if is_finished:
        return FINISHED
    if streams == 0:
        return paused(paused_groups) if paused_groups else NO_STREAMS
    if "learner" not in loads and parked_ratio is None:
        return UNKNOWN
    parked = parked_ratio or 0.0
    if "learner" in loads and demand_ratio(loads, parked) >= 1 / (1 - STARVED):
        return FLEET
    is_starved, is_held_back = loads.get("learner", 1.0) <= 1 - STARVED, parked >= PARKED
    if is_starved or is_held_back:
        busiest = max(LIMITS, key=lambda stage: loads.get(stage, 0.0))
        if loads.get(busiest, 0.0) >= LIMIT:
            return LIMITS[busiest]
    if loads.get("lag", 0.0) >= LIMIT:
        return LAG
    return QUEUE if is_starved and is_held_back else BALANCED
