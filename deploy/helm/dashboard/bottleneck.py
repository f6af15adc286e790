"""The row about whether learner, inference and fleet fit each other, and where a step's time goes."""

from dashboard.grafana import WAITING, Panel, Panels
from dashboard.promql import demand, of_release, parked_share, quantile, rate, stage_loads


def spread(histogram: str, legend: str, by: str = "") -> dict[str, str]:
    """Its median and 99th percentile."""
    return {f"{legend}, p{q * 100:.0f}": quantile(q, histogram, by) for q in (0.5, 0.99)}


BOTTLENECK: Panels = {
    "Time spent waiting": Panel(
        good="Learner and streams below 25 %: they fit. Learner high: whatever else works near 100 % is the limit, "
        "and the fleet where nothing does. Streams high: fewer of them, or a faster learner.",
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
        good="Near 1. At 2 twice the env-servers would be used until the busiest of learner, inference and CPUs has "
        "no time left, at 0.5 half of them do.",
        queries={"times the present one": demand()},
    ),
    "Rollout queue": Panel(
        good="Between empty and full. Always empty: the fleet is short. Full: streams are held back, and resume in "
        "turn as the learner takes unrolls.",
        queries={
            "unrolls that wait for the learner": "kubebeast_rollouts_queued{%s}",
            "full": "clamp_min(kubebeast_rollout_queue_capacity{%s} - kubebeast_rollouts_running{%s}, 0)",
            "played at the moment": "kubebeast_rollouts_running{%s}",
        },
    ),
    "Rows of an inference batch": Panel(
        good="Mean well above the environments of one stream: inference serves many streams at once. Waiting rows "
        "that grow: more inference threads, or larger batches.",
        queries={
            "mean": f"{rate('kubebeast_inference_rows_total')} / {rate('kubebeast_inference_batches_total')}",
            **spread("kubebeast_inference_batch_rows", "rows"),
            "rows that wait": "kubebeast_inference_queue_rows{%s}",
        },
    ),
    "What starts an inference batch": Panel(
        good="Full or all. Timeout: batches wait in vain for rows that do not come, so lower min_inference_rows or "
        "add env-servers. Dropped: 0.",
        unit="ops",
        queries={
            "{{reason}}": rate("kubebeast_inference_flushes_total"),
            "dropped": rate("kubebeast_inference_dropped_total"),
        },
    ),
    "Phases of inference": Panel(
        good="The model takes most. Gather or reply longer than the model: batches of many small streams, or too few "
        "cores. A wide gap from p50 to p99: something else uses the machine.",
        unit="s",
        queries=spread("kubebeast_inference_seconds", "{{phase}}", by="phase"),
    ),
    "Round trip of a step": Panel(
        good="Environments: what playing and the network take. Actions: what the learner takes, without holding back. "
        "The larger of the two is where a faster part pays.",
        unit="s",
        queries={
            **spread("kubebeast_stream_env_seconds", "environments"),
            **spread("kubebeast_stream_action_seconds", "actions"),
        },
    ),
    "Waits of a step": Panel(
        good="For its batch: a small part of the round trip; otherwise inference is the limit. For actions at the "
        "env-server: above the learner's part by what the network takes.",
        unit="s",
        queries={
            **spread("kubebeast_inference_queue_wait_seconds", "for its batch"),
            **spread("kubebeast_envserver_action_wait_seconds", "for actions, at the env-server"),
        },
    ),
    "Waits of rollouts and streams": Panel(
        good="Short. Long waits of rollouts age the data, long holds of streams waste env-servers: both say that the "
        "learner is the limit.",
        unit="s",
        queries={
            **spread("kubebeast_rollout_queue_wait_seconds", "rollout queued"),
            **spread("kubebeast_stream_parked_seconds", "stream held back"),
        },
    ),
    "Phases of an update": Panel(
        good="Forward and backward take most. To device: the bus to the GPU, or observations larger than they need to "
        "be. Publish: the model is large for its batches.",
        unit="s",
        queries=spread("kubebeast_update_seconds", "{{phase}}", by="phase"),
    ),
    "Updates": Panel(
        good="Level. Falls with the env-steps when the fleet is short, alone when the learner is slow.",
        unit="ops",
        queries={"of the weights": of_release(rate("kubebeast_updates_total"))},
    ),
    "Updates without a share": Panel(
        good="Of several learners: 0. A learner without a batch of its own has too few streams.",
        unit="percentunit",
        ceiling=1,
        queries={"of all updates": f"{rate('kubebeast_empty_shares_total')} / ({rate('kubebeast_updates_total')} > 0)"},
        levels=WAITING,
    ),
}
