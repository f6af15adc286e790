"""Alerts on the learner: is it running, and is it learning?"""

from alerts.rule import WHERE, Alert, of_run, unfinished

_RETURN = "max by (cluster, namespace, job, env_id) (avg_over_time(kubebeast_task_episode_return_mean[$window]))"

# Crashes counted by the run itself, over all its processes: those of a recreated pod are another series.
# Older learners have no such count; their starts within a pod are used.
_CRASHES = f"({of_run('kubebeast_run_crashes')})[$loop:$resolution]"
_STARTS = "changes(kubebeast_learner_start_time_seconds[$loop])"
_STEP = of_run("kubebeast_learner_step")

# The last values of the newest learner process, even if it is gone.
_STARTED = "last_over_time(kubebeast_learner_start_time_seconds[$history])"
_WAS_FINISHED = f"""\
last_over_time(kubebeast_learner_step[$history]) >= last_over_time(kubebeast_learner_total_steps[$history])
  and {_STARTED} == on (cluster, namespace, job) group_left () max by (cluster, namespace, job) ({_STARTED})"""


def _furthest(offset: str = "") -> str:
    """Returns the largest step of each run within the time that it may stand still."""
    return f"max by (cluster, namespace, job, run_id) (max_over_time(({_STEP})[$stall:$resolution]{offset}))"


LEARNER = {
    "KubeBeastLearnerDown": Alert(
        severity="critical",
        # Env-servers without a learner indicate its loss. If they are not scraped, its absence is the only sign.
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
        says="Prometheus has not read the learner for $quick, but its env-servers are up. If Prometheus does not read "
        "the env-servers, the alert fires if it has read the learner within the last $history.",
        meaning="Nothing is learned. Env-servers keep dialing and lose nothing. The alert does not fire for a "
        "finished run, or for an uninstalled release if Prometheus has read its env-servers.",
        panels=["Verdict", "Env-steps"],
        steps=[
            "Run `kubebeast fleet`: it shows why the pod is missing, e.g. a quota, or a missing image, node or volume.",
            "If the pod is Terminating for minutes, its node does not answer. The pod is replaced once the node is "
            "back. If the node is off for good, run `kubectl taint node NODE "
            "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`; before Kubernetes 1.26, run `kubectl delete "
            "pod POD --force`.",
            "Run `kubectl describe pod`. OOMKilled: raise the memory limit. A failed probe: read the log.",
            "Run `kubectl logs --previous`. Exit status 2 means a wrong setting.",
            "If the learner is a Job that has failed, `kubebeast fleet` shows the reason. Remove it, delete the Job "
            "and upgrade with the same values.",
            "If the learner runs but is not scraped, check the NetworkPolicy and the labels of the ServiceMonitor.",
            "If you uninstalled the release and Prometheus never read its env-servers, silence the alert. It ends "
            "after $history.",
        ],
    ),
    "KubeBeastLearnerRestarting": Alert(
        severity="warning",
        # A learner that exits in order, e.g. for an upgrade or a drain, has saved and lost nothing.
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  max by (cluster, namespace, job, run_id) (max_over_time({_CRASHES}))
  - min by (cluster, namespace, job, run_id) (min_over_time({_CRASHES}))
  or
  sum by (cluster, namespace, job, rank) ({_STARTS})
  unless on (cluster, namespace, job) kubebeast_run_crashes
) >= 3"""),
        summary=f"The learner of {WHERE} restarts repeatedly.",
        says="It was killed or failed {{ $value | humanize }} times within the last $loop.",
        meaning="The learner crashed at least three times within $loop, and the training since the newest checkpoint "
        "is repeated after each crash. A learner that is replaced by "
        "an upgrade, a drain or a deleted pod saves before it exits, and does not count.",
        panels=["Starts of the learner", "Memory of the learner", "Age of the last checkpoint"],
        steps=[
            "Run `kubectl describe pod`. OOMKilled: raise the memory limit, or use a smaller replay buffer or batch. "
            "A failed liveness probe: read the log.",
            "Run `kubectl logs --previous`: the last lines contain the reason of the exit.",
            "For nodes that disappear without notice, use a node that stays, or a shorter checkpoint_interval_minutes.",
        ],
    ),
    "KubeBeastNoProgress": Alert(
        severity="critical",
        # A missing fleet has its own alert, and so has a missing learner. During a restart loop both are there
        # at times.
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  {_furthest()}
  <= {_furthest(" offset $stall")}
  and on (cluster, namespace, job, run_id) present_over_time(kubebeast_run_info[$quick])
)
and on (cluster, namespace, job) max_over_time(kubebeast_streams[$stall]) > 0"""),
        hold="$quick",
        summary=f"The training of {WHERE} makes no progress.",
        says="Its highest step within the last $stall is {{ $value | humanize }}, no higher than before.",
        meaning="The learner has env-servers but has made no new step within $stall: it stands still, or it crashes "
        "again and again before it can save its next checkpoint.",
        panels=["Starts of the learner", "Env-steps", "Time spent waiting", "Age of the last checkpoint"],
        steps=[
            "Together with KubeBeastLearnerRestarting, this alert means that the learner crashes before its first "
            "checkpoint. Lower checkpoint_interval_minutes, and remove the cause of the crashes.",
            "If the learner waits for rollouts, env-servers hang. `kubebeast top` shows the phase of each stream.",
            "If the learner does not wait, look at its log and at /healthz, which reports for how long the training "
            "loop has made no progress.",
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
        meaning="A skipped update uses up its batch without a change of the weights. Ten in a row end the run.",
        panels=["Skipped updates", "Gradient norm", "Losses"],
        steps=[
            "Look for the steps in the learner's log.",
            "Check whether losses and gradient norm grew before these steps.",
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
        meaning="The policy lag is above 20 updates on average. V-trace corrects for old policies, but learns less "
        "from their steps.",
        panels=["Policy lag", "Importance weights of V-trace", "Waits of rollouts and streams"],
        steps=[
            "Together with KubeBeastFleetIdle, this alert means that the fleet is too large for the learner: remove "
            "env-servers.",
            "There are as many unrolls in flight as environments: use a larger batch_size or fewer environments.",
            "max_learner_queue_size limits queued and in-progress unrolls. max_policy_lag drops and counts unrolls "
            "that are too old.",
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
        meaning="The mean return is closer to the worst than to the best of the last $history, and below the best by "
        "more than a quarter of |best| + |worst|. Noise on a plateau is smaller, for returns of any sign.",
        panels=["Return lost since its best", "Return of the newest episodes", "Entropy of the policy"],
        steps=[
            "An entropy near 0 means that the policy repeats itself: raise entropy_cost. After a jump of the gradient "
            "norm, lower learning_rate or grad_norm_clipping.",
            "Look at policy lag and clipped rho: the data may have become old at the same time.",
            "If only one task collapsed, check its group of env-servers for a new version, other kwargs, and failures.",
            "If keep_checkpoints has kept checkpoints from before the drop, play them with `kubebeast eval "
            "--checkpoint`. If you move the newer ones away, the run resumes from the newest one that is left.",
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
        meaning="After the last step, the learner and its env-servers stay until the release is paused, extended or "
        "uninstalled.",
        panels=["Verdict", "GPU memory"],
        steps=[
            "To free the GPU and the nodes and keep the run, use `helm upgrade` with `paused=true`.",
            "To let the next run free them itself, use `learner.workload=job`.",
            "To continue training, set a larger total_steps.",
            "If the run is complete, copy it from its volume, then use `helm uninstall`.",
        ],
    ),
}
