"""The first row: in ten seconds how fast, how good, who waits for whom and what it costs."""

from dashboard.cost import DOLLARS_AN_HOUR, NEEDS_POD_MONITOR
from dashboard.grafana import NONE_IS_GOOD, WAITING, Level, Panel, Query, Row
from dashboard.promql import of_release, parked_share, stage_loads
from dashboard.verdict import TEXTS, verdict

WINDOW = "$__rate_interval"
NEEDS_RULES = "no rules"
_RETURN = of_release("kubebeast_task_episode_return_mean{%s}", "env_id")
_FALL = f"""\
(kubebeast_task_return_best{{%s}} - on (cluster, namespace, job, env_id) group_right () {_RETURN})
/ on (cluster, namespace, job, env_id) group_left ()
  clamp_min(abs(kubebeast_task_return_best{{%s}}) + abs(kubebeast_task_return_worst{{%s}}), 1e-9)"""
_LOADS = stage_loads(WINDOW, of="{%s}")

GLANCE = Row(
    "What is going on?",
    [
        Panel(
            title="Verdict",
            good="Balanced. Otherwise it names what holds the others up: docs/monitoring.md says what would help, the "
            "row on the bottleneck below shows why.",
            unit="short",
            kind="stat",
            width=6,
            queries=[Query(verdict(WINDOW, of="{%s}"), "verdict")],
            texts=TEXTS,
        ),
        Panel(
            title="Speed",
            good="As high as it was. Lower than before: the verdict says who is to blame.",
            unit="short",
            kind="stat",
            width=4,
            queries=[Query("kubebeast_learner_steps_per_second{%s}", "env-steps a second")],
        ),
        Panel(
            title="Return",
            good="Rises. Mean unclipped return of the newest episodes of each task.",
            unit="short",
            kind="stat",
            width=5,
            queries=[Query(_RETURN, "{{env_id}}")],
        ),
        Panel(
            title="Return lost since its best",
            good="Near 0 %. Above 25 % the learning has collapsed: look at entropy, gradient norm and rho. How far a "
            "task fell below its best of six hours, as a share of |best| + |worst|. Needs the rules, and a few "
            "minutes of history.",
            unit="percentunit",
            kind="stat",
            width=4,
            queries=[Query(_FALL, "{{env_id}}")],
            levels=(Level(None, "green"), Level(0.15, "orange"), Level(0.25, "red")),
            no_data=NEEDS_RULES,
        ),
        Panel(
            title="Alerts that fire",
            good="0. Each has a section in docs/alerts.md: what it means, how to confirm it, what to do. Needs the "
            "rules.",
            unit="short",
            kind="stat",
            width=5,
            queries=[
                Query(
                    of_release('ALERTS{%s, alertstate="firing"}', "alertname, pod", aggregate="count")
                    + " or on (cluster, namespace, job) 0 * "
                    + of_release("kubebeast_learner_demand_ratio{%s}"),
                    "{{alertname}} {{pod}}",
                )
            ],
            levels=NONE_IS_GOOD,
            no_data=NEEDS_RULES,
        ),
        Panel(
            title="Learner waits for the fleet",
            good="Below 25 %. Above 50 % most of what the learner costs is lost. Whether more env-servers would help "
            "the verdict says.",
            unit="percentunit",
            kind="stat",
            width=4,
            queries=[Query("kubebeast_learner_starved_ratio{%s}", "of the last half minute")],
            levels=WAITING,
        ),
        Panel(
            title="Fleet waits for the learner",
            good="Below 25 %. Above 50 % most of what the env-servers cost is lost: take some away.",
            unit="percentunit",
            kind="stat",
            width=4,
            queries=[Query(parked_share(WINDOW, of="{%s}"), "of the streams")],
            levels=WAITING,
        ),
        Panel(
            title="Inference at work",
            good="Any, as long as the learner does not wait. Near 100 % while it does: inference is the limit.",
            unit="percentunit",
            kind="stat",
            width=4,
            queries=[Query(_LOADS["inference"], "of the last half minute")],
        ),
        Panel(
            title="CPUs of the learner",
            good="Any, as long as the learner does not wait. Near 100 % while it does: its machine, or the limit of "
            "its container, is the limit.",
            unit="percentunit",
            kind="stat",
            width=4,
            queries=[Query(_LOADS["cpu"], "at work")],
        ),
        Panel(
            title="Dollars an hour",
            good="What you expect to pay. Prices are the two text fields at the top; env-servers count while they are "
            "scraped.",
            unit="currencyUSD",
            kind="stat",
            width=4,
            queries=[Query(DOLLARS_AN_HOUR, "learner and fleet")],
            no_data=NEEDS_POD_MONITOR,
        ),
        Panel(
            title="A million steps cost",
            good="Lower is better; compare before and after a change of the fleet. In dollars, of steps that the "
            "learner took.",
            unit="currencyUSD",
            kind="stat",
            width=4,
            queries=[
                Query(
                    f"{DOLLARS_AN_HOUR} / 3600 * 1e6 / "
                    + of_release(
                        'rate(kubebeast_steps_total{%s, outcome="delivered"}[$__rate_interval])', aggregate="sum"
                    ),
                    "dollars",
                )
            ],
            no_data=NEEDS_POD_MONITOR,
        ),
    ],
    height=4,
    is_open=True,
)
