"""The verdict of `kubebeast top` as one PromQL expression, a number for each."""

from dashboard.promql import RELEASE, busiest, demand, of_release, parked_share, stage_loads
from kubebeast_learner.observe.top.verdict import LIMIT, LIMITS, PARKED, STARVED, Stage

FINISHED, NO_STREAMS, FLEET, CPU, INFERENCE, LEARNER, LAG, BALANCED = range(8)
TEXTS = {
    FINISHED: ("Finished", "blue"),
    NO_STREAMS: ("No env-server plays", "red"),
    FLEET: ("Fleet starves the learner", "orange"),
    CPU: ("The learner's CPUs are the limit", "orange"),
    INFERENCE: ("Inference is the limit", "orange"),
    LEARNER: ("Learner holds the fleet back", "orange"),
    LAG: ("The data are old", "orange"),
    BALANCED: ("Balanced", "green"),
}
_CODES: dict[Stage, int] = {"cpu": CPU, "inference": INFERENCE, "learner": LEARNER}


def verdict(window: str, *, of: str) -> str:
    """The first condition that holds counts, in the order of kubebeast_learner.observe.top.verdict.judge."""
    loads = {stage: f"clamp_max({of_release(load)}, 1)" for stage, load in stage_loads(window, of=of).items()}
    starved = of_release(f"kubebeast_learner_starved_ratio{of}")
    parked = of_release(parked_share(window, of=of))
    waits = f"({starved} >= {STARVED} or {parked} >= {PARKED})"
    stages = busiest({stage: loads[stage] for stage in LIMITS}, RELEASE)
    conditions = {
        FINISHED: of_release(f"kubebeast_learner_step{of} >= kubebeast_learner_total_steps{of}"),
        NO_STREAMS: of_release(f"kubebeast_streams{of} == 0"),
        FLEET: f"{demand(window, RELEASE, of=of)}\n>= 1 / (1 - {STARVED})",
        **{_CODES[stage]: f"{loads[stage]} >= {LIMIT} and {loads[stage]} >= {stages} and {waits}" for stage in LIMITS},
        LAG: f"{loads['lag']} >= {LIMIT}",
        BALANCED: starved,
    }
    return "\nor ".join(f"({condition}) * 0 + {code}" for code, condition in conditions.items())
