"""The row about the balance of learner, inference and fleet, and the parts of a step's time."""

from dashboard.grafana import WAITING, Panel, Panels
from dashboard.promql import demand, empty_share, of_release, parked_share, quantile, rate, stage_loads


def spread(histogram: str, legend: str, by: str = "") -> dict[str, str]:
    """The median and the 99th percentile of a histogram."""
    return {f"{legend}, p{q * 100:.0f}": quantile(q, histogram, by) for q in (0.5, 0.99)}


BOTTLENECK: Panels = {
    "Time spent waiting": Panel(
        good="Good: learner and streams below 25 %, so that they fit each other. If the learner waits more, the "
        "limit is the part that works near 100 %, or the fleet if there is no such part. If the streams wait more, "
        "use fewer streams or a faster learner.",
        unit="percentunit",
        ceiling=1,
        queries={
            "learner waits for rollouts": "kubebeast_learner_starved_ratio{%s}",
            "streams wait for the learner": parked_share(),
            "inference works": stage_loads()["inference"],
            "the learner's CPUs work": stage_loads()["cpu"],
        },
        levels=WAITING,
    ),
    "Fleets that could be used": Panel(
        good="Good: near 1. At 2, twice as many env-servers could be used until the busiest of learner, inference "
        "and CPUs has no time left. At 0.5, half of the env-servers are enough.",
        queries={"times the present one": demand()},
    ),
    "Rollout queue": Panel(
        good="Good: between empty and full. If it is always empty, the fleet is too small. If it is full, streams "
        "are held back, and resume in turn as the learner takes unrolls.",
        queries={
            "unrolls that wait for the learner": "kubebeast_rollouts_queued{%s}",
            "full": "clamp_min(kubebeast_rollout_queue_capacity{%s} - kubebeast_rollouts_running{%s}, 0)",
            "played at the moment": "kubebeast_rollouts_running{%s}",
        },
    ),
    "Rows of an inference batch": Panel(
        good="Good: a mean well above the number of environments per stream, so that inference serves many streams "
        "at once. If the number of waiting rows grows, use more inference threads or larger batches.",
        queries={
            "mean": f"{rate('kubebeast_inference_rows_total')} / {rate('kubebeast_inference_batches_total')}",
            **spread("kubebeast_inference_batch_rows", "rows"),
            "rows that wait": "kubebeast_inference_queue_rows{%s}",
        },
    ),
    "Triggers of inference batches": Panel(
        good="Good: full or all. Timeout: batches wait in vain for more rows, so lower min_inference_rows or add "
        "env-servers. Dropped: 0 is good.",
        unit="ops",
        queries={
            "{{reason}}": rate("kubebeast_inference_flushes_total"),
            "dropped": rate("kubebeast_inference_dropped_total"),
        },
    ),
    "Phases of inference": Panel(
        good="Good: the model takes most of the time. If gather or reply takes longer than the model, batches "
        "consist of many small streams, or there are too few cores. A wide gap between p50 and p99 means that "
        "another process uses the machine.",
        unit="s",
        queries=spread("kubebeast_inference_seconds", "{{phase}}", by="phase"),
    ),
    "Round trip of a step": Panel(
        good="Environments: the time of the environments and the network. Actions: the time of the learner, except "
        "for holding streams back. It pays to speed up the larger of the two.",
        unit="s",
        queries={
            **spread("kubebeast_stream_env_seconds", "environments"),
            **spread("kubebeast_stream_action_seconds", "actions"),
        },
    ),
    "Waits of a step": Panel(
        good="Good: the wait for a batch is a small part of the round trip; otherwise inference is the limit. The "
        "wait for actions at the env-server exceeds the learner's part by the time of the network.",
        unit="s",
        queries={
            **spread("kubebeast_inference_queue_wait_seconds", "for its batch"),
            **spread("kubebeast_envserver_action_wait_seconds", "for actions, at the env-server"),
        },
    ),
    "Waits of rollouts and streams": Panel(
        good="Good: short. Long waits of rollouts make the data older, and long holds of streams waste env-servers. "
        "In both cases the learner is the limit.",
        unit="s",
        queries={
            **spread("kubebeast_rollout_queue_wait_seconds", "rollout queued"),
            **spread("kubebeast_stream_parked_seconds", "stream held back"),
        },
    ),
    "Phases of an update": Panel(
        good="Good: forward and backward take most of the time. If to device takes long, the bus to the GPU is slow, "
        "or observations are larger than necessary. If publish takes long, the model is large for its batches.",
        unit="s",
        queries=spread("kubebeast_update_seconds", "{{phase}}", by="phase"),
    ),
    "Updates": Panel(
        good="Good: level. If the fleet is too small, updates fall together with the env-steps. If the learner is "
        "slow, they fall alone.",
        unit="ops",
        queries={"of the weights": of_release(rate("kubebeast_updates_total"))},
    ),
    "Updates without a share": Panel(
        good="For several learners. Good: 0. A learner without a batch of its own has too few streams.",
        unit="percentunit",
        ceiling=1,
        queries={"of all updates": empty_share()},
        levels=WAITING,
    ),
}
