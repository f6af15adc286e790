"""The row about throughput and what it costs."""

from dashboard.cost import DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import Panel, Query, Row
from dashboard.promql import of_release

_POD_STEPS = "rate(kubebeast_envserver_env_steps_total{%s}[$__rate_interval])"
_DELIVERED = of_release('rate(kubebeast_steps_total{%s, outcome="delivered"}[$__rate_interval])', aggregate="sum")

SPEED = Row(
    "How fast, and for how much?",
    [
        Panel(
            title="Env-steps",
            good="Sampled and delivered lie on each other, level as long as the fleet is. Sampled far above delivered: "
            "steps are dropped, see the row on data.",
            unit="ops",
            width=12,
            queries=[
                Query('rate(kubebeast_steps_total{%s, outcome=~"sampled|delivered"}[$__rate_interval])', "{{outcome}}"),
            ],
        ),
        Panel(
            title="Env-steps of an env-server",
            good="Pods of a group are alike. A slowest far below the mean has a slow node or too little "
            "CPU: the table of the fleet names it. All fall "
            "when the fleet grows: the learner or its inference is the limit.",
            unit="ops",
            width=12,
            queries=[
                Query(of_release(_POD_STEPS, "kubebeast_group", aggregate="avg"), "mean of {{kubebeast_group}}"),
                Query(of_release(_POD_STEPS, "kubebeast_group", aggregate="min"), "slowest of {{kubebeast_group}}"),
            ],
        ),
        Panel(
            title="Env-steps for a dollar",
            good="Higher is better; compare before and after a change of the fleet. Prices are the two text fields at "
            "the top; env-servers count while they are scraped.",
            unit="short",
            width=8,
            queries=[Query(f"{_DELIVERED} * 3600 / {DOLLARS_AN_HOUR}", "delivered")],
            no_data=NEEDS_POD_MONITOR,
        ),
        Panel(
            title="Trained",
            good="Grows steadily up to 100 %.",
            unit="percentunit",
            ceiling=1,
            kind="stat",
            width=4,
            queries=[Query("kubebeast_learner_step{%s} / kubebeast_learner_total_steps{%s}", "of all steps")],
        ),
        Panel(
            title="Time left",
            good="Shrinks as fast as time goes by. Nothing is shown while the training stands still.",
            unit="s",
            kind="stat",
            width=4,
            queries=[
                Query(
                    "clamp_min(kubebeast_learner_total_steps{%s} - kubebeast_learner_step{%s}, 0)"
                    " / (kubebeast_learner_steps_per_second{%s} > 0)",
                    "at the present speed",
                )
            ],
        ),
        Panel(
            title="Traffic of the learner",
            good="Well below what its network can carry. Bytes for a step that grow: compression is off, or "
            "observations are larger than they need to be.",
            unit="Bps",
            width=8,
            queries=[
                Query("rate(kubebeast_received_bytes_total{%s}[$__rate_interval])", "from env-servers"),
                Query("rate(kubebeast_sent_bytes_total{%s}[$__rate_interval])", "to env-servers"),
            ],
        ),
    ],
)
