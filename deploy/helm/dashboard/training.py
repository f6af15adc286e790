"""Rows about the training itself: does it learn, how fast, from what, and what would be lost."""

from dashboard.grafana import Panel, Query, Row

LEARNING = Row(
    "Is it learning?",
    [
        Panel(
            title="Return of the newest episodes",
            good="Rises, with plateaus; levels off near the task's best. A fall that lasts is worth a look at the row "
            "on data.",
            unit="short",
            floor=None,
            width=12,
            queries=[Query("kubebeast_episode_return_mean{%s}", "mean of 100")],
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
                    "(kubebeast_learner_total_steps{%s} - kubebeast_learner_step{%s})"
                    " / (deriv(kubebeast_learner_step{%s}[10m]) > 0)",
                    "at the present speed",
                )
            ],
        ),
        Panel(
            title="Episodes",
            good="Finished episodes a second: above 0, and lower as a policy learns to live longer.",
            unit="eps",
            kind="stat",
            width=4,
            queries=[Query("rate(kubebeast_episodes_total{%s}[$__rate_interval])", "finished")],
        ),
    ],
)

SPEED = Row(
    "How fast?",
    [
        Panel(
            title="Env-steps",
            good="Sampled and delivered lie on each other, level as long as the fleet is.",
            unit="ops",
            queries=[
                Query('rate(kubebeast_steps_total{%s, outcome=~"sampled|delivered"}[$__rate_interval])', "{{outcome}}"),
            ],
        ),
        Panel(
            title="Env-steps of an env-server",
            good="Pods of a group are alike. A pod far below the others has a slow node or too little CPU.",
            unit="ops",
            queries=[
                Query(
                    "avg by (kubebeast_group) (rate(kubebeast_envserver_env_steps_total{%s}[$__rate_interval]))",
                    "mean of {{kubebeast_group}}",
                ),
                Query(
                    "bottomk(5, rate(kubebeast_envserver_env_steps_total{%s}[$__rate_interval]))",
                    "slowest: {{pod}}",
                ),
            ],
        ),
        Panel(
            title="Updates",
            good="Level. Falls with the env-steps when the fleet is short, alone when the learner is slow.",
            unit="ops",
            queries=[Query("rate(kubebeast_updates_total{%s}[$__rate_interval])", "of the weights")],
        ),
    ],
)

DATA = Row(
    "Are the data good?",
    [
        Panel(
            title="Policy lag",
            good="A few updates, and level. V-trace corrects for more, and learns less from it.",
            unit="short",
            queries=[Query("kubebeast_policy_lag_updates{%s}", "updates, mean of a batch")],
        ),
        Panel(
            title="Dropped steps",
            good="0 %: the defaults drop nothing before the end.",
            unit="percentunit",
            queries=[
                Query(
                    'rate(kubebeast_steps_total{%s, outcome=~"dropped_.*"}[$__rate_interval]) / ignoring(outcome)'
                    ' group_left() rate(kubebeast_steps_total{%s, outcome="sampled"}[$__rate_interval])',
                    "{{outcome}}",
                )
            ],
        ),
        Panel(
            title="Skipped updates",
            good="0: losses and gradients are finite.",
            unit="short",
            queries=[Query("increase(kubebeast_updates_skipped_total{%s}[1h])", "in an hour")],
        ),
    ],
)

SAFETY = Row(
    "Is it safe?",
    [
        Panel(
            title="Age of the last checkpoint",
            good="A saw-tooth as high as checkpoint_interval_minutes. A crash loses as much.",
            unit="s",
            queries=[Query("kubebeast_checkpoint_age_seconds{%s}", "age")],
        ),
        Panel(
            title="Checkpoints that failed",
            good="0. Otherwise the volume is full or gone.",
            unit="short",
            queries=[Query("increase(kubebeast_checkpoint_failures_total{%s}[1h])", "in an hour")],
        ),
        Panel(
            title="Memory of the learner",
            good="Level after the first minutes, well below the limit.",
            unit="bytes",
            queries=[Query("process_resident_memory_bytes{%s}", "resident")],
        ),
    ],
)
