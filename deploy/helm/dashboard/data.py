"""The row about what the learner learns from, and whether the optimisation is sound."""

from dashboard.grafana import Level, Panel, Query, Row

DATA = Row(
    "Is the data good?",
    [
        Panel(
            title="Policy lag",
            good="A few updates, and level. Above 20: the fleet is too large for the learner, or batch_size too small "
            "for the environments in flight. V-trace corrects for it, and learns less.",
            unit="short",
            queries=[Query("kubebeast_policy_lag_updates{%s}", "updates, mean of a batch")],
            levels=(Level(None, "green"), Level(20, "red")),
        ),
        Panel(
            title="Importance weights of V-trace",
            good="Mean near 1, few clipped. Mean far from 1: data are old, or the policy changes fast; lower "
            "learning_rate or the lag.",
            unit="short",
            queries=[
                Query("kubebeast_rho_mean{%s}", "mean rho"),
                Query("kubebeast_rho_clipped_ratio{%s}", "share of rho that is clipped"),
            ],
        ),
        Panel(
            title="Dropped and padded steps",
            good="Dropped: 0 %, the defaults drop nothing before the end. Padded: one place an episode, for the way "
            "to the next one. More of them: streams end often; the padding costs time, not truth.",
            unit="percentunit",
            queries=[
                Query(
                    'rate(kubebeast_steps_total{%s, outcome=~"dropped_.*"}[$__rate_interval]) / ignoring(outcome)'
                    ' group_left() rate(kubebeast_steps_total{%s, outcome="sampled"}[$__rate_interval])',
                    "{{outcome}}",
                ),
                Query(
                    "rate(kubebeast_rollout_padded_steps_total{%s}[$__rate_interval]) / ignoring(outcome)"
                    ' rate(kubebeast_steps_total{%s, outcome="delivered"}[$__rate_interval])',
                    "padding, for each delivered step",
                ),
            ],
        ),
        Panel(
            title="Losses",
            good="Finite and of like size for long stretches; their sign and level say little. A jump together with "
            "the return is the moment to look at.",
            unit="short",
            floor=None,
            queries=[Query("kubebeast_loss{%s}", "{{part}}")],
        ),
        Panel(
            title="Entropy of the policy",
            good="Falls slowly from the logarithm of the number of actions. Near 0 early: the policy has collapsed to "
            "one action; raise entropy_cost. Stuck at the top: it does not learn.",
            unit="short",
            queries=[Query("kubebeast_policy_entropy_nats{%s}", "nats")],
        ),
        Panel(
            title="Gradient norm",
            good="Level within a factor of ten. Growing without end: lower learning_rate or grad_norm_clipping before "
            "updates are skipped.",
            unit="short",
            queries=[Query("kubebeast_gradient_norm{%s}", "before clipping")],
        ),
        Panel(
            title="Skipped updates",
            good="0: losses and gradients are finite. Ten in a row end the run; the learner's log names the steps.",
            unit="short",
            width=12,
            queries=[Query("increase(kubebeast_updates_skipped_total{%s}[1h])", "in an hour")],
        ),
        Panel(
            title="Learning rate",
            good="The schedule that was asked for, also after a restart.",
            unit="sci",
            width=12,
            queries=[Query("kubebeast_learning_rate{%s}", "learning rate")],
        ),
    ],
)
