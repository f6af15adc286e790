"""Verdict on the bottleneck of a run, shared by `kubebeast top` and the dashboard.

docs/monitoring.md explains the thresholds. deploy/helm/dashboard/verdict.py is the same in PromQL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kubebeast_common.pool.demand import Loads, Stage, demand_ratio

STARVED = 0.25
"""Share of time without rollouts from which the learner counts as starved."""
PARKED = 0.25
"""Share of time behind a full rollout queue from which streams count as held back."""
LIMIT = 0.75
"""Load from which a stage counts as the bottleneck of the others."""
EMPTY_SHARES = 0.5
"""Share of updates joined without a batch from which a rank counts as starved."""


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
