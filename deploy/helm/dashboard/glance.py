"""The first row: an overview of speed, return, waits and cost."""

from dashboard.cost import DELIVERED, DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import NONE_IS_GOOD, WAITING, Level, Panels, Stat
from dashboard.promql import of_release, parked_share, stage_loads
from dashboard.verdict import TEXTS, verdict

NEEDS_RULES = "no rules"
_RETURN = of_release("kubebeast_task_episode_return_mean{%s}", "env_id")
_BEST = of_release("kubebeast_task_return_best{%s}", "env_id")
_WORST = of_release("kubebeast_task_return_worst{%s}", "env_id", aggregate="min")
_FALL = f"({_BEST} - {_RETURN})\n/ clamp_min(abs({_BEST}) + abs({_WORST}), 1e-9)"
_LOADS = stage_loads()

GLANCE: Panels = {
    "Verdict": Stat(
        good="Good: balanced. Any other verdict names the bottleneck: docs/monitoring.md lists the remedies, and the "
        "row about the bottleneck below shows the cause.",
        width=6,
        queries={"verdict": verdict()},
        texts=[*TEXTS.values()],
    ),
    "Speed": Stat(
        good="Good: as high as before. If it is lower, the verdict names the cause.",
        queries={"env-steps a second": of_release("kubebeast_learner_steps_per_second{%s}")},
    ),
    "Return": Stat(
        good="Good: rises. Mean unclipped return of the newest episodes of each task.",
        width=5,
        queries={"{{env_id}}": _RETURN},
    ),
    "Return lost since its best": Stat(
        good="Good: near 0 %. Above 25 %, learning has collapsed: look at entropy, gradient norm and rho. The value "
        "is the fall of a task below its best of six hours, as a share of |best| + |worst|. It needs the rules, and "
        "a few minutes of history.",
        unit="percentunit",
        queries={"{{env_id}}": _FALL},
        levels=(Level(None, "green"), Level(0.15, "orange"), Level(0.25, "red")),
        no_data=NEEDS_RULES,
    ),
    "Alerts that fire": Stat(
        good="Good: 0. Each alert has a section in docs/alerts.md with its meaning, the panels that confirm it, and "
        "the remedies. The value needs the rules.",
        width=5,
        queries={
            "{{alertname}} {{pod}}": of_release('ALERTS{%s, alertstate="firing"}', "alertname, pod", aggregate="count")
            + " or on (cluster, namespace, job) 0 * "
            + of_release("kubebeast_learner_demand_ratio{%s}")
        },
        levels=NONE_IS_GOOD,
        no_data=NEEDS_RULES,
    ),
    "Learner waits for the fleet": Stat(
        good="Good: below 25 %. Above 50 %, most of the cost of the learner is wasted. The verdict shows whether "
        "more env-servers would help.",
        unit="percentunit",
        queries={"of the last half minute": "kubebeast_learner_starved_ratio{%s}"},
        levels=WAITING,
    ),
    "Fleet waits for the learner": Stat(
        good="Good: below 25 %. Above 50 %, most of the cost of the env-servers is wasted: remove some of them.",
        unit="percentunit",
        queries={"of the streams": parked_share()},
        levels=WAITING,
    ),
    "Inference at work": Stat(
        good="Good: any value while the learner does not wait. If the learner waits and this is near 100 %, "
        "inference is the limit.",
        unit="percentunit",
        queries={"of the last half minute": _LOADS["inference"]},
    ),
    "CPUs of the learner": Stat(
        good="Good: any value while the learner does not wait. If the learner waits and this is near 100 %, its "
        "machine, or the CPU limit of its container, is the limit.",
        unit="percentunit",
        queries={"at work": _LOADS["cpu"]},
    ),
    "Dollars an hour": Stat(
        good="Good: the cost that you expect. The two text fields at the top contain the prices. Env-servers count "
        "while they are scraped.",
        unit="currencyUSD",
        queries={"learner and fleet": DOLLARS_AN_HOUR},
        no_data=NEEDS_POD_MONITOR,
    ),
    "A million steps cost": Stat(
        good="Lower is better: compare the values before and after a change of the fleet. In dollars, for steps that "
        "the learner received.",
        unit="currencyUSD",
        queries={"dollars": f"{DOLLARS_AN_HOUR} / 3600 * 1e6 / {DELIVERED}"},
        no_data=NEEDS_POD_MONITOR,
    ),
}
