"""Alerts that name the env-server to blame."""

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
        # Of two pods none is above twice the median: it takes three to tell who is slow.
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
        meaning="The others do not wait for it, but it costs as much as they do and plays a fifth or less. Groups of "
        "at least three env-servers are compared, and steps above a millisecond.",
        panels=["Pods, the slowest first", "Time of environments", "Env-steps of an env-server"],
        steps=[
            "Its CPU: throttled by a limit, or its node shared with something greedy (kubectl top pods, kubectl "
            "describe node).",
            "Its environment: other kwargs, a level that is slower than others, a renderer without its GPU.",
            "Delete the pod: it says Bye, nothing is lost, a new one starts elsewhere.",
        ],
    ),
    "KubeBeastEnvServerGone": Alert(
        severity="warning",
        # By name where all that have vanished are missed: others may have said Bye at the same time.
        expr=unfinished(f"""\
{_VANISHED}
and on (cluster, namespace, job)
sum by (cluster, namespace, job) {_VANISHED}
< 0.5 + kubebeast_streams_missed
or on (cluster, namespace, job)
max by (cluster, namespace, job) (kubebeast_streams_missed) > 0.5"""),
        hold="$quick",
        summary=f"An env-server of {WHERE} is gone: {_SERVER}",
        says="It left without a Bye within the last $long, and nothing has come in its place for $quick. The alert "
        "names no pod where Prometheus did not read it, reads it still, or cannot tell it from others that left with "
        "a Bye at the same time.",
        meaning="The process was killed, its node or the network between failed. Its running episodes were cut short; "
        "only steps under way were lost. A fleet that is scaled down says Bye: no alert.",
        panels=["Streams", "Streams that end or are turned away", "Pods, the slowest first"],
        steps=[
            "kubectl get pods -o wide with the label app.kubernetes.io/component=envserver: Pending, "
            "CrashLoopBackOff, or on a node that is NotReady?",
            "kubectl describe pod: OOMKilled asks for a higher memory limit, Evicted for requests that tell the truth.",
            "A pod that runs: its log says what its connection broke with; the panel Reconnects counts by code.",
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
        summary=f"Environments of {WHERE} are given up by {_SERVER}.",
        says="{{ $value }} of its environments or streams failed so often that they are not made again.",
        meaning="The others play on.",
        panels=["Restarts and quarantine", "Failures of environments", "Pods, the slowest first"],
        steps=[
            "Failures by kind, and whether other pods have them.",
            "The env-server's log has the traceback, for a hang the place where it hangs.",
            "One pod: its node. All pods: the environment, its kwargs or env_timeout_s. A new pod tries again.",
        ],
    ),
}
