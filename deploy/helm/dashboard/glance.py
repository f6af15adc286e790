"""The first row: in ten seconds how fast, how good, who waits for whom and what it costs."""

from dashboard.cost import DELIVERED, DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import NONE_IS_GOOD, WAITING, Level, Panels, Stat
from dashboard.promql import of_release, parked_share, stage_loads
from dashboard.verdict import TEXTS, verdict

NEEDS_RULES = "no rules"
_RETURN = of_release("kubebeast_task_episode_return_mean{%s}", "env_id")
_FALL = f"""\
(kubebeast_task_return_best{{%s}} - on (cluster, namespace, job, env_id) group_right () {_RETURN})
/ on (cluster, namespace, job, env_id) group_left ()
  clamp_min(abs(kubebeast_task_return_best{{%s}}) + abs(kubebeast_task_return_worst{{%s}}), 1e-9)"""
_LOADS = stage_loads()

GLANCE: Panels = {
    "Verdict": Stat(
        good="Balanced. Otherwise it names what holds the others up: docs/monitoring.md says what would help, the row "
        "on the bottleneck below shows why.",
        width=6,
        queries={"verdict": verdict()},
        texts=[*TEXTS.values()],
    ),
    "Speed": Stat(
        good="As high as it was. Lower than before: the verdict says who is to blame.",
        queries={"env-steps a second": of_release("kubebeast_learner_steps_per_second{%s}")},
    ),
    "Return": Stat(
        good="Rises. Mean unclipped return of the newest episodes of each task.",
        width=5,
        queries={"{{env_id}}": _RETURN},
    ),
    "Return lost since its best": Stat(
        good="Near 0 %. Above 25 % the learning has collapsed: look at entropy, gradient norm and rho. How far a task "
        "fell below its best of six hours, as a share of |best| + |worst|. Needs the rules, and a few minutes of "
        "history.",
        unit="percentunit",
        queries={"{{env_id}}": _FALL},
        levels=(Level(None, "green"), Level(0.15, "orange"), Level(0.25, "red")),
        no_data=NEEDS_RULES,
    ),
    "Alerts that fire": Stat(
        good="0. Each has a section in docs/alerts.md: what it means, how to confirm it, what to do. Needs the rules.",
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
        good="Below 25 %. Above 50 % most of what the learner costs is lost. Whether more env-servers would help the "
        "verdict says.",
        unit="percentunit",
        queries={"of the last half minute": "kubebeast_learner_starved_ratio{%s}"},
        levels=WAITING,
    ),
    "Fleet waits for the learner": Stat(
        good="Below 25 %. Above 50 % most of what the env-servers cost is lost: take some away.",
        unit="percentunit",
        queries={"of the streams": parked_share()},
        levels=WAITING,
    ),
    "Inference at work": Stat(
        good="Any, as long as the learner does not wait. Near 100 % while it does: inference is the limit.",
        unit="percentunit",
        queries={"of the last half minute": _LOADS["inference"]},
    ),
    "CPUs of the learner": Stat(
        good="Any, as long as the learner does not wait. Near 100 % while it does: its machine, or the limit of its "
        "container, is the limit.",
        unit="percentunit",
        queries={"at work": _LOADS["cpu"]},
    ),
    "Dollars an hour": Stat(
        good="What you expect to pay. Prices are the two text fields at the top; env-servers count while they are "
        "scraped.",
        unit="currencyUSD",
        queries={"learner and fleet": DOLLARS_AN_HOUR},
        no_data=NEEDS_POD_MONITOR,
    ),
    "A million steps cost": Stat(
        good="Lower is better; compare before and after a change of the fleet. In dollars, of steps that the learner "
        "took.",
        unit="currencyUSD",
        queries={"dollars": f"{DOLLARS_AN_HOUR} / 3600 * 1e6 / {DELIVERED}"},
        no_data=NEEDS_POD_MONITOR,
    ),
}
