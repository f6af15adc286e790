"""The row about throughput and what it costs."""

from dashboard.cost import DELIVERED, DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import Panel, Panels, Stat
from dashboard.promql import of_release, rate

_POD_STEPS = rate("kubebeast_envserver_env_steps_total")

SPEED: Panels = {
    "Env-steps": Panel(
        good="Sampled and delivered lie on each other, level as long as the fleet is. Sampled far above delivered: "
        "steps are dropped, see the row on data.",
        unit="ops",
        width=12,
        queries={"{{outcome}}": rate("kubebeast_steps_total", 'outcome=~"sampled|delivered"')},
    ),
    "Env-steps of an env-server": Panel(
        good="Pods of a group are alike. A slowest far below the mean has a slow node or too little CPU: the table of "
        "the fleet names it. All fall when the fleet grows: the learner or its inference is the limit.",
        unit="ops",
        width=12,
        queries={
            "mean of {{kubebeast_group}}": of_release(_POD_STEPS, "kubebeast_group", aggregate="avg"),
            "slowest of {{kubebeast_group}}": of_release(_POD_STEPS, "kubebeast_group", aggregate="min"),
        },
    ),
    "Env-steps for a dollar": Panel(
        good="Higher is better; compare before and after a change of the fleet. Prices are the two text fields at the "
        "top; env-servers count while they are scraped.",
        queries={"delivered": f"{DELIVERED} * 3600 / {DOLLARS_AN_HOUR}"},
        no_data=NEEDS_POD_MONITOR,
    ),
    "Trained": Stat(
        good="Grows steadily up to 100 %.",
        unit="percentunit",
        ceiling=1,
        queries={"of all steps": of_release("kubebeast_learner_step{%s} / kubebeast_learner_total_steps{%s}")},
        width=4,
    ),
    "Time left": Stat(
        good="Shrinks as fast as time goes by. Nothing is shown while the training stands still.",
        unit="s",
        queries={
            "at the present speed": of_release(
                "clamp_min(kubebeast_learner_total_steps{%s} - kubebeast_learner_step{%s}, 0) / "
                "(kubebeast_learner_steps_per_second{%s} > 0)"
            )
        },
        width=4,
    ),
    "Traffic of the learner": Panel(
        good="Well below what its network can carry. Bytes for a step that grow: compression is off, or observations "
        "are larger than they need to be.",
        unit="Bps",
        queries={
            "from env-servers": rate("kubebeast_received_bytes_total"),
            "to env-servers": rate("kubebeast_sent_bytes_total"),
        },
    ),
}
