"""Alerts that name a faulty env-server."""

from alerts.rule import WHERE, Alert, unfinished
from dashboard.promql import mean

_GROUP = "cluster, namespace, job, kubebeast_group"
_POD = f"{_GROUP}, pod"
_SERVER = "{{ $labels.kubebeast_group }} {{ $labels.pod }}"
_STEP = mean("kubebeast_envserver_step_seconds", "kubebeast_group, pod", "$window", of="")
_VANISHED = f"""\
(
  max by ({_POD}) (last_over_time(kubebeast_envserver_streams_connected[$long])) > 0
  unless max by ({_POD}) (kubebeast_envserver_streams_connected)
)"""

ENVSERVERS = {
    "KubeBeastEnvServerSlow": Alert(
        severity="warning",
        # Of two pods, none is above twice the median: a slow one stands out among at least three.
        expr=unfinished(f"""\
(
{_STEP}
)
> on ({_GROUP}) group_left ()
(5 * quantile by ({_GROUP}) (0.5,
{_STEP}))
> 0.001"""),
        hold="$patient",
        summary=f"The env-server {_SERVER} of {WHERE} is slow.",
        says="A step of its environments takes {{ $value | humanizeDuration }}, more than five times the median of "
        "its group.",
        meaning="The other env-servers do not wait for a slow one, but it costs as much as each of them and plays a "
        "fifth of their steps or less. The alert compares groups of at least three env-servers, and only steps of "
        "more than a millisecond.",
        panels=["Pods, the slowest first", "Time of environments", "Env-steps of an env-server"],
        steps=[
            "Check its CPU: a limit throttles it, or another process takes the CPU of its node (`kubectl top pods`, "
            "`kubectl describe node`).",
            "Check its environment: other kwargs, a level that is slower than others, or a renderer without its GPU.",
            "Delete the pod: it sends a Bye, nothing is lost, and a new pod starts elsewhere.",
        ],
    ),
    "KubeBeastEnvServerGone": Alert(
        severity="warning",
        # By name if all vanished pods are missed: others may have sent a Bye at the same time.
        expr=unfinished(f"""\
{_VANISHED}
and on (cluster, namespace, job)
sum by (cluster, namespace, job) {_VANISHED}
< 0.5 + kubebeast_streams_missed
or on (cluster, namespace, job)
max by (cluster, namespace, job) (kubebeast_streams_missed) > 0.5"""),
        hold="$quick",
        summary=f"An env-server of {WHERE} is gone: {_SERVER}",
        says="An env-server left without a Bye within the last $long, and no replacement has come for $quick. The "
        "alert has no pod if Prometheus never read the pod, still reads it, or cannot distinguish it from pods that "
        "left with a Bye at the same time.",
        meaning="Its process was killed, its node failed, or its network to the learner failed. Its running episodes "
        "were cut short; only steps in progress were lost. A fleet that is scaled down sends a Bye: no alert.",
        panels=["Streams", "Streams that end or are turned away", "Pods, the slowest first"],
        steps=[
            "Run `kubectl get pods -o wide` with the label `app.kubernetes.io/component=envserver`. Look for Pending, "
            "CrashLoopBackOff, and nodes that are NotReady.",
            "Run `kubectl describe pod`. OOMKilled: raise the memory limit. Evicted: set requests that match the real "
            "usage.",
            "If the pod runs, its log contains the error of its connection. The panel Reconnects counts by code.",
            "The alert ends $long after the loss.",
        ],
    ),
    "KubeBeastEnvQuarantined": Alert(
        severity="warning",
        expr=unfinished(f"""\
sum by ({_POD}) (
  kubebeast_envserver_envs_quarantined + kubebeast_envserver_streams_quarantined
) > 0"""),
        hold="$quick",
        summary=f"Environments of {WHERE} are quarantined on {_SERVER}.",
        says="{{ $value }} of its environments or streams failed so often that they are not created again.",
        meaning="An env-server no longer creates at least one of its environments or streams, because it failed too "
        "often. The other environments continue.",
        panels=["Restarts and quarantine", "Failures of environments", "Pods, the slowest first"],
        steps=[
            "Compare the failures by kind, and with those of other pods.",
            "The env-server's log contains the traceback, and for a hang the place of the hang.",
            "If only one pod fails, check its node. If all pods fail, check the environment, its kwargs and "
            "env_timeout_s. A new pod tries again.",
        ],
    ),
}
