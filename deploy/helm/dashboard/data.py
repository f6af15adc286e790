"""The row about the data of the learner, and the soundness of its optimization."""

from dashboard.grafana import Level, Panel, Panels
from dashboard.promql import of_release, rate

_DROPPED, _SAMPLED, _DELIVERED = (
    rate("kubebeast_steps_total", f"outcome{matched}") for matched in ('=~"dropped_.*"', '="sampled"', '="delivered"')
)
_PADDED = rate("kubebeast_rollout_padded_steps_total")

DATA: Panels = {
    "Policy lag": Panel(
        good="Good: a few updates, and level. Above 20, the fleet is too large for the learner, or batch_size is too "
        "small for the number of environments. V-trace corrects for the lag, but learns less.",
        queries={"updates, mean of a batch": "kubebeast_policy_lag_updates{%s}"},
        levels=(Level(None, "green"), Level(20, "red")),
    ),
    "Importance weights of V-trace": Panel(
        good="Good: a mean near 1, and few clipped weights. If the mean is far from 1, the data are old, or the "
        "policy changes fast: lower learning_rate or the lag.",
        queries={
            "mean rho": "kubebeast_rho_mean{%s}",
            "share of rho that is clipped": "kubebeast_rho_clipped_ratio{%s}",
        },
    ),
    "Dropped and padded steps": Panel(
        good="Good: 0 % dropped, because the defaults drop no steps before the end. Padding is one place per "
        "episode, for the transition to the next one. If there is more, streams end often. Padding costs time, but "
        "does not affect correctness.",
        unit="percentunit",
        queries={
            "{{outcome}}": f"{_DROPPED} / ignoring(outcome) group_left() {_SAMPLED}",
            "padding, for each delivered step": f"{_PADDED} / ignoring(outcome) {_DELIVERED}",
        },
    ),
    "Losses": Panel(
        good="Good: finite, and of similar size for long periods. Their sign and level mean little. If a loss jumps "
        "together with the return, look at that moment.",
        floor=None,
        queries={"{{part}}": "kubebeast_loss{%s}"},
    ),
    "Entropy of the policy": Panel(
        good="Good: falls slowly from the logarithm of the number of actions. If it is near 0 early, the policy has "
        "collapsed to one action: raise entropy_cost. If it stays at the top, the agent does not learn.",
        queries={"nats": "kubebeast_policy_entropy_nats{%s}"},
    ),
    "Gradient norm": Panel(
        good="Good: level within a factor of ten. If it grows without end, lower learning_rate or grad_norm_clipping "
        "before updates are skipped.",
        queries={"before clipping": of_release("kubebeast_gradient_norm{%s}")},
    ),
    "Skipped updates": Panel(
        good="Good: 0, so losses and gradients are finite. Ten in a row end the run. The learner's log names the "
        "steps.",
        width=12,
        queries={"in an hour": of_release("increase(kubebeast_updates_skipped_total{%s}[1h])")},
    ),
    "Learning rate": Panel(
        good="Good: the configured schedule, also after a restart.",
        unit="sci",
        width=12,
        queries={"learning rate": of_release("kubebeast_learning_rate{%s}")},
    ),
}
