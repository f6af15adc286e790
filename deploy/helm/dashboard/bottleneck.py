"""The row about whether learner, inference and fleet fit each other, and where a step's time goes."""

from dashboard.grafana import WAITING, Panel, Query, Row
from dashboard.promql import RELEASE, demand, parked_share, quantile, stage_loads

WINDOW = "$__rate_interval"


def spread(histogram: str, legend: str, by: str = "") -> list[Query]:
    """Its median and 99th percentile."""
    return [
        Query(quantile(q, histogram, WINDOW, of="{%s}", by=by), f"{legend}, {name}")
        for q, name in ((0.5, "p50"), (0.99, "p99"))
    ]


BOTTLENECK = Row(
    "Who is the bottleneck?",
    [
        Panel(
            title="Time spent waiting",
            good="Learner and streams below 25 %: they fit. Learner high: whatever else works near 100 % is the limit, "
            "and the fleet where nothing does. Streams high: fewer of them, or a faster learner.",
            unit="percentunit",
            ceiling=1,
            queries=[
                Query("kubebeast_learner_starved_ratio{%s}", "learner waits for rollouts"),
                Query(parked_share(WINDOW, of="{%s}"), "streams wait for the learner"),
                Query(stage_loads(WINDOW, of="{%s}")["inference"], "inference works"),
                Query(stage_loads(WINDOW, of="{%s}")["cpu"], "the learner's CPUs work"),
            ],
            levels=WAITING,
        ),
        Panel(
            title="Fleets that could be used",
            good="Near 1. At 2 twice the env-servers would be used until the busiest of learner, inference and CPUs "
            "has no time left, at 0.5 half of them do.",
            unit="short",
            queries=[Query(demand(WINDOW, RELEASE, of="{%s}"), "times the present one")],
        ),
        Panel(
            title="Rollout queue",
            good="Between empty and full. Always empty: the fleet is short. Full: streams are held back. It may hold "
            "more than that, as every environment may end the unroll that it has begun.",
            unit="short",
            queries=[
                Query("kubebeast_rollouts_queued{%s}", "unrolls that wait for the learner"),
                Query("kubebeast_rollout_queue_capacity{%s}", "full"),
            ],
        ),
        Panel(
            title="Rows of an inference batch",
            good="Mean well above the environments of one stream: inference serves many streams at once. Waiting rows "
            "that grow: more inference threads, or larger batches.",
            unit="short",
            queries=[
                Query(
                    "rate(kubebeast_inference_rows_total{%s}[$__rate_interval])"
                    " / rate(kubebeast_inference_batches_total{%s}[$__rate_interval])",
                    "mean",
                ),
                *spread("kubebeast_inference_batch_rows", "rows"),
                Query("kubebeast_inference_queue_rows{%s}", "rows that wait"),
            ],
        ),
        Panel(
            title="What starts an inference batch",
            good="Full or all. Timeout: batches wait in vain for rows that do not come, so lower min_inference_rows or "
            "add env-servers. Dropped: 0.",
            unit="ops",
            queries=[
                Query("rate(kubebeast_inference_flushes_total{%s}[$__rate_interval])", "{{reason}}"),
                Query("rate(kubebeast_inference_dropped_total{%s}[$__rate_interval])", "dropped"),
            ],
        ),
        Panel(
            title="Phases of inference",
            good="The model takes most. Gather or reply longer than the model: batches of many small streams, or too "
            "few cores. A wide gap from p50 to p99: something else uses the machine.",
            unit="s",
            queries=spread("kubebeast_inference_seconds", "{{phase}}", by="phase"),
        ),
        Panel(
            title="Round trip of a step",
            good="Environments: what playing and the network take. Actions: what the learner takes, without holding "
            "back. The larger of the two is where a faster part pays.",
            unit="s",
            queries=[
                *spread("kubebeast_stream_env_seconds", "environments"),
                *spread("kubebeast_stream_action_seconds", "actions"),
            ],
        ),
        Panel(
            title="Waits of a step",
            good="For its batch: a small part of the round trip; otherwise inference is the limit. For actions at the "
            "env-server: above the learner's part by what the network takes.",
            unit="s",
            queries=[
                *spread("kubebeast_inference_queue_wait_seconds", "for its batch"),
                *spread("kubebeast_envserver_action_wait_seconds", "for actions, at the env-server"),
            ],
        ),
        Panel(
            title="Waits of rollouts and streams",
            good="Short. Long waits of rollouts age the data, long holds of streams waste env-servers: both say that "
            "the learner is the limit.",
            unit="s",
            queries=[
                *spread("kubebeast_rollout_queue_wait_seconds", "rollout queued"),
                *spread("kubebeast_stream_parked_seconds", "stream held back"),
            ],
        ),
        Panel(
            title="Phases of an update",
            good="Forward and backward take most. To device: the bus to the GPU, or observations larger than they need "
            "to be. Publish: the model is large for its batches.",
            unit="s",
            width=16,
            queries=spread("kubebeast_update_seconds", "{{phase}}", by="phase"),
        ),
        Panel(
            title="Updates",
            good="Level. Falls with the env-steps when the fleet is short, alone when the learner is slow.",
            unit="ops",
            queries=[Query("rate(kubebeast_updates_total{%s}[$__rate_interval])", "of the weights")],
        ),
    ],
)
