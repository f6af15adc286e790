"""The verdict of `kubebeast top` as one PromQL expression with a number for each verdict."""

from dashboard.promql import OF, busiest, demand, of_release, parked_share, rank_ratio, stage_loads
from kubebeast_observe.top.verdict import LIMIT, LIMITS, PARKED, STARVED

TEXTS = {
    "finished": ("Finished", "blue"),
    "no-streams": ("No env-server plays", "red"),
    "ranks": ("A learner has too few streams", "orange"),
    "fleet": ("Fleet starves the learner", "orange"),
    "cpu": ("The learner's CPUs are the limit", "orange"),
    "inference": ("Inference is the limit", "orange"),
    "learner": ("Learner holds the fleet back", "orange"),
    "lag": ("The data are old", "orange"),
    "queue": ("The full queue holds streams back", "orange"),
    "balanced": ("Balanced", "green"),
}
"""Text and color by the code of kubebeast_observe.top.verdict; their positions are the numbers."""


def verdict() -> str:
    """The first condition that holds is the verdict, in the order of kubebeast_observe.top.verdict.judge."""
    loads = {stage: f"clamp_max({of_release(load)}, 1)" for stage, load in stage_loads().items()}
    starved, parked = of_release(f"kubebeast_learner_starved_ratio{OF}"), of_release(parked_share())
    waits = f"({starved} >= {STARVED} or {parked} >= {PARKED})"
    stages = busiest({stage: loads[stage] for stage in LIMITS})
    conditions: dict[str, str] = {
        "finished": of_release(f"kubebeast_learner_step{OF} >= kubebeast_learner_total_steps{OF}"),
        "no-streams": of_release(f"kubebeast_streams{OF} == 0"),
        "ranks": rank_ratio(),
        "fleet": f"{demand()}\n>= 1 / (1 - {STARVED})",
        **{stage: f"{loads[stage]} >= {LIMIT} and {loads[stage]} >= {stages} and {waits}" for stage in LIMITS},
        "lag": f"{loads['lag']} >= {LIMIT}",
        "queue": f"{starved} >= {STARVED} and {parked} >= {PARKED}",
        "balanced": starved,
    }
    return "\nor ".join(f"({conditions[code]}) * 0 + {number}" for number, code in enumerate(TEXTS))
