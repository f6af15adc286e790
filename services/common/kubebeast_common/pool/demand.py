"""Model of the demand for env-servers, shared by `kubebeast top`, the dashboard, autoscalers and brokers.

Each stage has a load, the share of its time that it works. A fleet can grow until the busiest stage has no time left,
and can lose the streams that are held back:

    demand ratio = (1 - parked) / max(loads)

One of several learners may have no share while another holds its streams back: then the fleet is too small to reach
all of them at any load, and the demand ratio is at least ranks / ranks with a share.

docs/monitoring.md derives it and explains the thresholds. deploy/helm/dashboard/promql.py is the same in PromQL.
"""

from collections.abc import Mapping
from typing import Literal

OLD_UPDATES = 20.0
"""Policy lag at which data are old: from here on a larger fleet makes worse data instead of more."""
MIN_LOAD = 0.1
"""Load below which measurements are unreliable; it limits the demand to ten times the present fleet."""

Stage = Literal["cpu", "inference", "learner", "lag"]
Loads = Mapping[Stage, float]
"""Loads in [0, 1]; unknown ones are left out."""


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
