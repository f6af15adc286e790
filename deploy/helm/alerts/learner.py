"""Alerts on the learner itself: whether it runs, and whether it learns."""

from alerts.rule import WHERE, Alert, of_run, unfinished

_RETURN = "max by (cluster, namespace, job, env_id) (avg_over_time(kubebeast_task_episode_return_mean[$window]))"

_STARTS = "changes(kubebeast_learner_start_time_seconds[$loop])"
_STEP = of_run("kubebeast_learner_step")

# Whether the learner is there or not: what the newest of those that were there said last.
_STARTED = "last_over_time(kubebeast_learner_start_time_seconds[$history])"
_WAS_FINISHED = f"""\
last_over_time(kubebeast_learner_step[$history]) >= last_over_time(kubebeast_learner_total_steps[$history])
  and {_STARTED} == on (cluster, namespace, job) group_left () max by (cluster, namespace, job) ({_STARTED})"""


def _furthest(offset: str = "") -> str:
    """The largest step of each run within the time that it may stand still."""
    return f"max by (cluster, namespace, job, run_id) (max_over_time(({_STEP})[$stall:$resolution]{offset}))"


LEARNER = {
    "KubeBeastLearnerDown": Alert(
        severity="critical",
        # Env-servers without a learner miss one. Where nobody scrapes env-servers, its absence is all there is.
        expr=f"""\
(
  max by (cluster, namespace, job) (kubebeast_envserver_streams)
  or
  max by (cluster, namespace, job) (present_over_time(kubebeast_streams[$history]))
  unless max by (cluster, namespace, job) (present_over_time(kubebeast_envserver_streams[$history]))
)
unless max by (cluster, namespace, job) (kubebeast_streams)
unless on (cluster, namespace, job) (
  {_WAS_FINISHED}
)""",
        hold="$quick",
        summary=f"The learner of {WHERE} is gone.",
        says="Its env-servers are there and it has not been read for $quick; where nobody scrapes them, it was read "
        "within the last $history.",
        meaning="Nothing is learnt; env-servers keep dialling and lose nothing. It does not fire for a run that had "
        "finished, nor for a release that is gone with its env-servers.",
        panels=["Verdict", "Env-steps"],
        steps=[
            "kubectl get pods with the label app.kubernetes.io/component=learner: Pending asks for a node or a volume.",
            "kubectl describe pod: OOMKilled asks for a higher memory limit, a failed probe for the log.",
            "kubectl logs --previous: exit status 2 is a wrong setting.",
            "A learner that runs and is not read: the NetworkPolicy, the ServiceMonitor's labels.",
            "Uninstalled on purpose, and no env-server is scraped: silence the alert, it ends $history after.",
        ],
    ),
    "KubeBeastLearnerRestarting": Alert(
        severity="warning",
        # A pod that is made again has another address, and so another series. All ranks start together.
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  sum by (cluster, namespace, job, rank) (1 + {_STARTS}) - 1
) >= 3"""),
        summary=f"The learner of {WHERE} restarts again and again.",
        says="It has started {{ $value | humanize }} times more within the last $loop.",
        meaning="What was learnt since the newest checkpoint is repeated each time.",
        panels=["Starts of the learner", "Memory of the learner", "Age of the last checkpoint"],
        steps=[
            "kubectl describe pod: OOMKilled asks for a higher memory limit, or a smaller replay buffer or batch; a "
            "failed liveness probe for the log.",
            "kubectl logs --previous: the last lines say why it ended.",
            "Evictions and spot nodes: a node that stays, or a shorter checkpoint_interval_minutes.",
        ],
    ),
    "KubeBeastNoProgress": Alert(
        severity="critical",
        # A fleet that is away has an alert of its own, and so has a learner. One that restarts in a loop has both
        # now and then.
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  {_furthest()}
  <= {_furthest(" offset $stall")}
  and on (cluster, namespace, job, run_id) present_over_time(kubebeast_run_info[$quick])
)
and on (cluster, namespace, job) max_over_time(kubebeast_streams[$stall]) > 0"""),
        hold="$quick",
        summary=f"The training of {WHERE} makes no progress.",
        says="Its furthest step within the last $stall is {{ $value | humanize }}, no further than before.",
        meaning="The learner has env-servers and trains nothing that lasts: it stands still, or it is restarted "
        "before it gets beyond its newest checkpoint.",
        panels=["Starts of the learner", "Env-steps", "Time spent waiting", "Age of the last checkpoint"],
        steps=[
            "KubeBeastLearnerRestarting as well: it dies before its first checkpoint. Lower "
            "checkpoint_interval_minutes, and mend why it dies.",
            "It waits for rollouts: env-servers that hang. kubebeast top shows what each stream does.",
            "It does not wait: its log, and /healthz, which says for how long its loop has not turned.",
        ],
    ),
    "KubeBeastNonFiniteUpdates": Alert(
        severity="warning",
        expr=unfinished("""\
max by (cluster, namespace, job) (
  increase(kubebeast_updates_skipped_total[$window])
) > 0"""),
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
    "KubeBeastPolicyLagHigh": Alert(
        severity="warning",
        expr=unfinished("""\
max by (cluster, namespace, job) (
  avg_over_time(kubebeast_policy_lag_updates[$window])
) > 20"""),
        hold="$patient",
        summary=f"The learner of {WHERE} learns from old policies.",
        says="The weights that acted are {{ $value | humanize }} updates old.",
        meaning="V-trace corrects for old policies by learning less from their steps.",
        panels=["Policy lag", "Importance weights of V-trace", "Waits of rollouts and streams"],
        steps=[
            "KubeBeastFleetIdle as well: the fleet is too large for the learner, take env-servers away.",
            "Unrolls in flight are as many as environments: a larger batch_size, or fewer environments.",
            "max_learner_queue_size bounds what is played or waits; max_policy_lag drops and counts what is too old.",
        ],
    ),
    "KubeBeastReturnCollapsed": Alert(
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
        meaning="The mean return is nearer to the worst than to the best of the last $history, and below the best by "
        "more than a quarter of |best| + |worst|: noise on a plateau is less, whatever the sign of the returns.",
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
    "KubeBeastFinishedHoldsGPU": Alert(
        severity="info",
        expr="""\
count by (cluster, namespace, job) (
  max by (cluster, namespace, job, pod, device) (kubebeast_gpu_memory_total_bytes)
  and on (cluster, namespace, job) kubebeast_learner_step >= kubebeast_learner_total_steps
)""",
        hold="$lenient",
        summary=f"The run of {WHERE} has finished and holds a GPU.",
        says="The learner is idle and holds {{ $value }} GPU.",
        meaning="It stays ready after its last step until the release is paused, extended or uninstalled; so do its "
        "env-servers.",
        panels=["Verdict", "GPU memory"],
        steps=[
            "Free the GPU and the nodes and keep the run: helm upgrade with paused=true.",
            "Train on: a larger total_steps.",
            "Nothing more to do: copy the run from its volume, then helm uninstall.",
        ],
    ),
}
