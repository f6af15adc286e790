"""The row about throughput and its cost."""

from dashboard.cost import DELIVERED, DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import Panel, Panels, Stat
from dashboard.promql import of_release, rate

_POD_STEPS = rate("kubebeast_envserver_env_steps_total")

SPEED: Panels = {
    "Env-steps": Panel(
        good="Good: sampled and delivered are equal, and level while the size of the fleet is constant. If sampled "
        "is far above delivered, steps are dropped: see the row about data.",
        unit="ops",
        width=12,
        queries={"{{outcome}}": rate("kubebeast_steps_total", 'outcome=~"sampled|delivered"')},
    ),
    "Env-steps of an env-server": Panel(
        good="Good: the pods of a group are alike. If the slowest pod is far below the mean, its node is slow or it "
        "has too little CPU: the table in the row about the fleet names it. If all pods get slower when the fleet "
        "grows, the learner or its inference is the limit.",
        unit="ops",
        width=12,
        queries={
            "mean of {{kubebeast_group}}": of_release(_POD_STEPS, "kubebeast_group", aggregate="avg"),
            "slowest of {{kubebeast_group}}": of_release(_POD_STEPS, "kubebeast_group", aggregate="min"),
        },
    ),
    "Env-steps for a dollar": Panel(
        good="Higher is better: compare the values before and after a change of the fleet. The two text fields at "
        "the top contain the prices. Env-servers count while they are scraped.",
        queries={"delivered": f"{DELIVERED} * 3600 / {DOLLARS_AN_HOUR}"},
        no_data=NEEDS_POD_MONITOR,
    ),
    "Trained": Stat(
        good="Good: grows steadily up to 100 %.",
        unit="percentunit",
        ceiling=1,
        queries={"of all steps": of_release("kubebeast_learner_step{%s} / kubebeast_learner_total_steps{%s}")},
        width=4,
    ),
    "Time left": Stat(
        good="Good: shrinks as fast as time passes. Empty while the training stands still.",
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
        good="Good: well below the capacity of the network. If the bytes per step grow, compression is off, or "
        "observations are larger than necessary.",
        unit="Bps",
        queries={
            "from env-servers": rate("kubebeast_received_bytes_total"),
            "to env-servers": rate("kubebeast_sent_bytes_total"),
        },
    ),
}
