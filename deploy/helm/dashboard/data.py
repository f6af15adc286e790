"""The row about what the learner learns from, and whether the optimisation is sound."""

from dashboard.grafana import Level, Panel, Panels
from dashboard.promql import of_release, rate

_DROPPED, _SAMPLED, _DELIVERED = (
    rate("kubebeast_steps_total", f"outcome{matched}") for matched in ('=~"dropped_.*"', '="sampled"', '="delivered"')
)
_PADDED = rate("kubebeast_rollout_padded_steps_total")

DATA: Panels = {
    "Policy lag": Panel(
        good="A few updates, and level. Above 20: the fleet is too large for the learner, or batch_size too small for "
        "the environments in flight. V-trace corrects for it, and learns less.",
        queries={"updates, mean of a batch": "kubebeast_policy_lag_updates{%s}"},
        levels=(Level(None, "green"), Level(20, "red")),
    ),
    "Importance weights of V-trace": Panel(
        good="Mean near 1, few clipped. Mean far from 1: data are old, or the policy changes fast; lower "
        "learning_rate or the lag.",
        queries={
            "mean rho": "kubebeast_rho_mean{%s}",
            "share of rho that is clipped": "kubebeast_rho_clipped_ratio{%s}",
        },
    ),
    "Dropped and padded steps": Panel(
        good="Dropped: 0 %, the defaults drop nothing before the end. Padded: one place an episode, for the way to "
        "the next one. More of them: streams end often; the padding costs time, not truth.",
        unit="percentunit",
        queries={
            "{{outcome}}": f"{_DROPPED} / ignoring(outcome) group_left() {_SAMPLED}",
            "padding, for each delivered step": f"{_PADDED} / ignoring(outcome) {_DELIVERED}",
        },
    ),
    "Losses": Panel(
        good="Finite and of like size for long stretches; their sign and level say little. A jump together with the "
        "return is the moment to look at.",
        floor=None,
        queries={"{{part}}": "kubebeast_loss{%s}"},
    ),
    "Entropy of the policy": Panel(
        good="Falls slowly from the logarithm of the number of actions. Near 0 early: the policy has collapsed to one "
        "action; raise entropy_cost. Stuck at the top: it does not learn.",
        queries={"nats": "kubebeast_policy_entropy_nats{%s}"},
    ),
    "Gradient norm": Panel(
        good="Level within a factor of ten. Growing without end: lower learning_rate or grad_norm_clipping before "
        "updates are skipped.",
        queries={"before clipping": of_release("kubebeast_gradient_norm{%s}")},
    ),
    "Skipped updates": Panel(
        good="0: losses and gradients are finite. Ten in a row end the run; the learner's log names the steps.",
        width=12,
        queries={"in an hour": of_release("increase(kubebeast_updates_skipped_total{%s}[1h])")},
    ),
    "Learning rate": Panel(
        good="The schedule that was asked for, also after a restart.",
        unit="sci",
        width=12,
        queries={"learning rate": of_release("kubebeast_learning_rate{%s}")},
    ),
}
