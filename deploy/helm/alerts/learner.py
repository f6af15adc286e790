"""Alerts on the learner itself: whether it runs, and whether it learns."""

from alerts.rule import WHERE, Alert, Group, unfinished

_RETURN = "max by (namespace, job, env_id) (avg_over_time(kubebeast_task_episode_return_mean[$window]))"

LEARNER = Group(
    "kubebeast.learner",
    [
        Alert(
            name="KubeBeastLearnerDown",
            severity="critical",
            expr="""\
max by (namespace, job) (present_over_time(kubebeast_streams[$history]))
unless max by (namespace, job) (kubebeast_streams)
unless max by (namespace, job) (
  last_over_time(kubebeast_learner_step[$history]) >= last_over_time(kubebeast_learner_total_steps[$history])
)""",
            hold="$quick",
            summary=f"The learner of {WHERE} is gone.",
            says="Prometheus has read it within the last $history and not within the last $quick.",
            meaning="Nothing is learnt; env-servers dial on and lose nothing. A run that had finished is not meant.",
            panels=["Verdict", "Env-steps"],
            steps=[
                "kubectl get pods with the label app.kubernetes.io/component=learner: Pending asks for a node or a "
                "volume.",
                "kubectl describe pod: OOMKilled asks for a higher memory limit, a failed probe for the log.",
                "kubectl logs --previous: exit status 2 is a wrong setting.",
                "A learner that runs and is not read: the NetworkPolicy, the ServiceMonitor's labels.",
                "Uninstalled on purpose: the alert ends $history after.",
            ],
        ),
        Alert(
            name="KubeBeastNonFiniteUpdates",
            severity="warning",
            expr=unfinished("max by (namespace, job) (increase(kubebeast_updates_skipped_total[$window])) > 0"),
            summary=f"The learner of {WHERE} skips updates.",
            says="About {{ $value | humanize }} updates in $window had a loss or gradient that was not finite.",
            meaning="Such batches are used up without changing the weights. Ten in a row end the run.",
            panels=["Skipped updates", "Gradient norm", "Losses"],
            steps=[
                "The learner's log names the steps.",
                "Losses and gradient norm before them: do they grow?",
                "Lower learning_rate or grad_norm_clipping, and look for rewards or observations of unusual size.",
            ],
        ),
        Alert(
            name="KubeBeastPolicyLagHigh",
            severity="warning",
            expr=unfinished("max by (namespace, job) (avg_over_time(kubebeast_policy_lag_updates[$window])) > 20"),
            hold="$patient",
            summary=f"The learner of {WHERE} learns from old policies.",
            says="The weights that acted are {{ $value | humanize }} updates old.",
            meaning="V-trace corrects for old policies by learning less from their steps.",
            panels=["Policy lag", "Importance weights of V-trace", "Waits of rollouts and streams"],
            steps=[
                "KubeBeastFleetIdle as well: the fleet is too large for the learner, take env-servers away.",
                "Unrolls in flight are as many as environments: a larger batch_size, or fewer environments.",
                "max_learner_queue_size bounds what waits; max_policy_lag drops what is too old, and counts it.",
            ],
        ),
        Alert(
            name="KubeBeastReturnCollapsed",
            severity="warning",
            expr=unfinished(f"""\
{_RETURN}
< kubebeast_task_return_best - 0.25 * (abs(kubebeast_task_return_best) + abs(kubebeast_task_return_worst))
and
{_RETURN}
< 0.5 * (kubebeast_task_return_best + kubebeast_task_return_worst)"""),
            hold="$patient",
            summary=f"The return of {WHERE} in {{{{ $labels.env_id }}}} has collapsed.",
            says="It is {{ $value | humanize }} now.",
            meaning="The mean return is nearer to the worst than to the best of the last $history, and below the best "
            "by more than a quarter of |best| + |worst|: noise on a plateau is less, whatever the sign of the returns.",
            panels=["Return lost since its best", "Return of the newest episodes", "Entropy of the policy"],
            steps=[
                "Entropy near 0: the policy repeats itself; raise entropy_cost. Gradient norm with a jump: lower "
                "learning_rate or grad_norm_clipping.",
                "Policy lag and clipped rho: did the data grow old at the same time?",
                "One task alone: has its group of env-servers a new version, other kwargs, failures?",
                "Checkpoints from before the fall, where keep_checkpoints kept any: kubebeast eval --checkpoint plays "
                "them. With the newer ones moved away, the run resumes from the newest that is left.",
            ],
        ),
    ],
)
