"""The first row: in ten seconds, what is wrong and where to look."""

from dashboard.grafana import NONE_IS_GOOD, WAITING, Level, Panel, Query, Row
from dashboard.promql import parked_share
from kubebeast_learner.top.verdict import BUSY, PARKED, STARVED

WINDOW = "$__rate_interval"
_RETURN = "max by (namespace, job, env_id) (kubebeast_task_episode_return_mean{%s})"
_FALL = f"""\
topk(1,
  (kubebeast_task_return_best{{%s}} - {_RETURN})
  / clamp_min(abs(kubebeast_task_return_best{{%s}}) + abs(kubebeast_task_return_worst{{%s}}), 1e-9)
  or 0 * {_RETURN}
)"""
_HELD_BACK = parked_share(WINDOW, of="{%s}")
# The first that is true counts, as in `kubebeast top`: every line has the labels of the learner alone.
_VERDICT = f"""\
(kubebeast_learner_step{{%s}} >= kubebeast_learner_total_steps{{%s}}) * 0
or (kubebeast_streams{{%s}} == 0) * 0 + 1
or (kubebeast_learner_starved_ratio{{%s}} >= {STARVED} and kubebeast_inference_busy_ratio{{%s}} >= {BUSY}) * 0 + 2
or (kubebeast_learner_starved_ratio{{%s}} >= {STARVED}) * 0 + 3
or ({_HELD_BACK} >= {PARKED}) * 0 + 4
or kubebeast_streams{{%s}} * 0 + 5"""

GLANCE = Row(
    "What is going on?",
    [
        Panel(
            title="Verdict",
            good="Balanced. Fleet starves the GPU: add env-servers. GPU starves the fleet: take env-servers away, or "
            "make updates faster. Inference: see its rows and phases below. No env-server: the fleet's row.",
            unit="short",
            kind="stat",
            width=6,
            queries=[Query(_VERDICT, "verdict")],
            texts={
                0: ("Finished", "blue"),
                1: ("No env-server plays", "red"),
                2: ("Inference is the bottleneck", "orange"),
                3: ("Fleet starves the GPU", "orange"),
                4: ("GPU starves the fleet", "orange"),
                5: ("Balanced", "green"),
            },
        ),
        Panel(
            title="Learner waits for the fleet",
            good="Below 25 %. Above 50 % most of what the GPU costs is lost: add env-servers.",
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
            queries=[Query(_HELD_BACK, "of the streams")],
            levels=WAITING,
        ),
        Panel(
            title="Return lost since its best",
            good="Near 0 %. Above 25 % the learning has collapsed: look at entropy, gradient norm and rho. The task "
            "that fell most below its best of six hours, as a share of |best| + |worst|; recorded by the rules, 0 % "
            "for the first minutes.",
            unit="percentunit",
            kind="stat",
            width=5,
            queries=[Query(_FALL, "{{env_id}}")],
            levels=(Level(None, "green"), Level(0.15, "orange"), Level(0.25, "red")),
        ),
        Panel(
            title="Alerts that fire",
            good="0. Each has a section in docs/alerts.md: what it means, how to confirm it, what to do.",
            unit="short",
            kind="stat",
            width=5,
            queries=[
                Query(
                    'count by (alertname, pod) (ALERTS{%s, alertstate="firing"}) or on () vector(0)',
                    "{{alertname}} {{pod}}",
                )
            ],
            levels=NONE_IS_GOOD,
        ),
    ],
    height=5,
)
