"""Model of the bottleneck, shared by `kubebeast top`, the dashboard's verdict and the autoscalers.

Each stage has a load, the share of its time that it works. A fleet can grow until the busiest stage has no time left,
and can lose the streams that are held back:

    demand ratio = (1 - parked) / max(loads)

One of several learners may have no share while another holds its streams back: then the fleet is too small to reach
all of them at any load, and the demand ratio is at least ranks / ranks with a share.

docs/monitoring.md derives it and explains the thresholds. deploy/helm/dashboard/promql.py is the same in PromQL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

STARVED = 0.25
"""Share of time without rollouts from which the learner counts as starved."""
PARKED = 0.25
"""Share of time behind a full rollout queue from which streams count as held back."""
LIMIT = 0.75
"""Load from which a stage counts as the bottleneck of the others."""
OLD_UPDATES = 20.0
"""Policy lag at which data are old: from here on a larger fleet makes worse data instead of more."""
MIN_LOAD = 0.1
"""Load below which measurements are unreliable; it limits the demand to ten times the present fleet."""

EMPTY_SHARES = 0.5
"""Share of updates joined without a batch from which a rank counts as starved."""

Stage = Literal["cpu", "inference", "learner", "lag"]
Loads = Mapping[Stage, float]
"""Loads in [0, 1]; unknown ones are left out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    code: Literal[
        "fleet",
        "cpu",
        "inference",
        "learner",
        "lag",
        "ranks",
        "queue",
        "balanced",
        "no-streams",
        "paused",
        "finished",
        "unknown",
    ]
    """The bottleneck."""
    text: str
    advice: str
    """The remedy; "" if none is needed."""


FINISHED = Verdict("finished", "trained to the end", "")
NO_STREAMS = Verdict("no-streams", "no env-server is connected", "look at the env-servers' logs")
FLEET = Verdict("fleet", "the fleet starves the learner", "more or faster env-servers would be used")
BALANCED = Verdict("balanced", "balanced", "")
UNKNOWN = Verdict("unknown", "not known yet", "")
# The first of the busiest is named: stages that a full machine slows down look busy, too.
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
    """Returns the known loads. All ratios are in [0, 1]; None if unknown."""
    known: dict[Stage, float | None] = {
        "cpu": cpu_busy_ratio,
        "inference": inference_busy_ratio,
        "learner": None if starved_ratio is None else 1 - starved_ratio,
        "lag": None if policy_lag_updates is None else policy_lag_updates / OLD_UPDATES,
    }
    return {stage: min(load, 1.0) for stage, load in known.items() if load is not None}


def demand_ratio(loads: Loads, parked_ratio: float, rank_ratio: float = 0.0) -> float:
    """Returns the size of the fleet that could be used, as a multiple of the present one; at most 10 by the loads.

    rank_ratio: all ranks divided by those with a share of the training, 0 if none is starved.
    """
    return max(rank_ratio, (1 - parked_ratio) / max([MIN_LOAD, *loads.values()]))


def starved(ranks: Sequence[int]) -> Verdict:
    """Returns the verdict on starved ranks among several learners."""
    which = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
    advice = "streams choose a learner by chance: more env-servers, or a larger num_streams, reach all of them"
    return Verdict("ranks", f"{which} too few streams", advice)


def paused(groups: Sequence[str]) -> Verdict:
    """Returns the verdict on a fleet scaled to zero. groups: arguments for `kubebeast fleet scale`."""
    commands = ", ".join(f"kubebeast fleet scale {group} REPLICAS" for group in groups)
    return Verdict("paused", "the fleet is scaled to zero", f"it comes back with {commands}")


def judge(
    *,
    is_finished: bool,
    streams: float | None,
    loads: Loads,
    parked_ratio: float | None,
    paused_groups: Sequence[str] = (),
    starved_ranks: Sequence[int] = (),
) -> Verdict:
    """Chooses the verdict. An unknown load is never the bottleneck.

    Args:
        streams: Streams of all ranks.
        parked_ratio: None if unknown.
        paused_groups: All groups of env-servers if each is scaled to zero, else empty.
        starved_ranks: Ranks without a share of the training, if others have one.
    """
    if is_finished:
        return FINISHED
    if streams == 0:
        return paused(paused_groups) if paused_groups else NO_STREAMS
    if starved_ranks:
        return starved(starved_ranks)
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
