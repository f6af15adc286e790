"""Expressions for both the dashboard and the alert rules.

`of` is the label matchers in braces: "{%s}" for those of the dashboard, "" for all releases.
"""

from collections.abc import Mapping

from kubebeast_common.pool.demand import MIN_LOAD, OLD_UPDATES, Stage
from kubebeast_observe.top.verdict import EMPTY_SHARES

RELEASE = "cluster, namespace, job"
"""Labels that identify a release; `cluster` exists if one Prometheus stores several clusters."""
WINDOW = "$__rate_interval"
OF = "{%s}"


def of_release(expr: str, by: str = "", *, aggregate: str = "max") -> str:
    """Returns one sample for each release and value of the labels `by`."""
    return f"{aggregate} by ({', '.join(filter(None, (RELEASE, by)))}) ({expr})"


def total(expr: str, by: str = "") -> str:
    return of_release(expr, by, aggregate="sum")


def rate(counter: str, matchers: str = "") -> str:
    """The rate of a counter. `matchers` are added to those of the dashboard."""
    return f"rate({counter}{{{', '.join(filter(None, ('%s', matchers)))}}}[{WINDOW}])"


def quantile(q: float, histogram: str, by: str = "") -> str:
    """The q-quantile of the observations of a histogram, for each release and value of the labels `by`."""
    labels = ", ".join(filter(None, ("le", RELEASE, by)))
    return f"histogram_quantile({q}, sum by ({labels}) ({rate(f'{histogram}_bucket')}))"


def mean(histogram: str, by: str, window: str = WINDOW, of: str = OF) -> str:
    """The mean of the observations of a histogram within `window`, as `quantile`; no sample if there are none."""
    observed, count = (total(f"rate({histogram}_{part}{of}[{window}])", by) for part in ("sum", "count"))
    return f"{observed}\n/ ({count} > 0)"


def parked_share(window: str = WINDOW, of: str = OF) -> str:
    """Share of the streams that a full rollout queue held back; 0 without streams."""
    parked, streams = (f"avg_over_time(kubebeast_{name}{of}[{window}])" for name in ("streams_parked", "streams"))
    return f"{parked} / clamp_min({streams}, 1)"


def empty_share(window: str = WINDOW, of: str = OF) -> str:
    """Share of the updates to which one of several ranks contributed nothing."""
    empty, updates = (f"rate(kubebeast_{name}_total{of}[{window}])" for name in ("empty_shares", "updates"))
    return f"{empty} / ({updates} > 0)"


def rank_ratio(window: str = WINDOW, by: str = RELEASE, of: str = OF) -> str:
    """All ranks divided by those with a share of the training; no sample if all ranks have one, or none has one."""
    share = empty_share(window, of)
    return f"""\
count by ({by}) ({share} >= 0)
/ count by ({by}) ({share} <= {EMPTY_SHARES:g})
and count by ({by}) ({share} > {EMPTY_SHARES:g})"""


def stage_loads(window: str = WINDOW, of: str = OF) -> dict[Stage, str]:
    """The load of every stage, no sample if it is unknown: make_loads of kubebeast_observe.top.verdict."""
    return {
        "cpu": f"rate(kubebeast_machine_cpu_seconds_total{of}[{window}]) / kubebeast_machine_cpus{of}",
        "inference": f"kubebeast_inference_busy_ratio{of}",
        "learner": f"1 - kubebeast_learner_starved_ratio{of}",
        "lag": f"avg_over_time(kubebeast_policy_lag_updates{of}[{window}]) / {OLD_UPDATES:g}",
    }


def busiest(loads: Mapping[Stage, str], by: str = RELEASE) -> str:
    """The greatest of the known loads, from MIN_LOAD to 1."""
    parts = [f'label_replace({load}, "stage", "{stage}", "", "")' for stage, load in loads.items()]
    return f"clamp(\n  max by ({by}) (\n    " + "\n    or ".join(parts) + f"\n  ),\n  {MIN_LOAD:g}, 1\n)"


def demand(window: str = WINDOW, by: str = RELEASE, of: str = OF) -> str:
    """The number of present fleets that could be used, 0 at the end: demand_ratio of
    kubebeast_observe.top.verdict.
    """
    is_unfinished = f"(kubebeast_learner_step{of} < bool kubebeast_learner_total_steps{of})"
    fleets = f"""\
max by ({by}) (
  {is_unfinished}
  * (1 - {parked_share(window, of)})
)
/ {busiest(stage_loads(window, of), by)}"""
    ranks = f"({rank_ratio(window, by, of)})\n* max by ({by}) {is_unfinished}"
    parts = [
        f'label_replace(\n{part}\n, "part", "{name}", "", "")' for name, part in (("fleet", fleets), ("ranks", ranks))
    ]
    return f"max by ({by}) (\n" + "\nor ".join(parts) + "\n)"
