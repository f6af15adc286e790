"""Alerts on the fleet from the learner's side: enough streams, not too many, and stable ones."""

from alerts.rule import WHERE, Alert, unfinished
from dashboard.promql import parked_share

# A fleet that does not reach every learner is neither too large nor limited by anything else.
_STARVED_RANKS = """\
max by (cluster, namespace, job, rank) (
  increase(kubebeast_empty_shares_total[$window])
  / (increase(kubebeast_updates_total[$window]) > 0)
) > 0.5"""
_UNLESS_RANKS = f"\nunless on (cluster, namespace, job) (\n{_STARVED_RANKS}\n)"

FLEET = {
    "KubeBeastNoStreams": Alert(
        severity="critical",
        expr=unfinished("max by (cluster, namespace, job) (kubebeast_streams) == 0"),
        hold="$calm",
        summary=f"No env-server is connected to the learner of {WHERE}.",
        says="The learner runs and has had no stream for $calm.",
        meaning="Nothing is learned.",
        panels=["Streams", "Reconnects", "Streams that end or are turned away"],
        steps=[
            "Run `kubectl get deployments` with the label `app.kubernetes.io/component=envserver`. Check that there "
            "are replicas and that they are available.",
            "Read an env-server's log. After `refused`, it names the field that does not fit. After `unreachable`, "
            "check the Service, the NetworkPolicy and TLS.",
            "Look for refused streams in the learner's log.",
            "If the fleet is scaled to zero on purpose, silence the alert while the run pauses.",
        ],
    ),
    "KubeBeastLearnerStarved": Alert(
        severity="warning",
        expr=unfinished(f"""\
max by (cluster, namespace, job) (
  avg_over_time(kubebeast_learner_starved_ratio[$window])
) > 0.5{_UNLESS_RANKS}"""),
        hold="$patient",
        summary=f"The learner of {WHERE} waits for rollouts.",
        says="It waited {{ $value | humanizePercentage }} of the time.",
        meaning="More env-servers make the training faster, unless inference, the learner's CPUs or old data are the "
        "limit. The verdict shows the limit.",
        panels=["Verdict", "Time spent waiting", "Fleets that could be used", "Pods, the slowest first"],
        steps=[
            "At a demand ratio well above 1, scale the Deployment of the env-servers, or raise maxReplicas if it has "
            "an autoscaler.",
            "At a demand ratio near 1 or below, more env-servers would only wait. Follow the verdict: a GPU, more "
            "inference threads, more CPUs for the learner, or fewer environments.",
            "Pods that are Pending need more nodes. Env-servers that are throttled by CPU limits need more CPU.",
            "With `--wait-for-updates`, as in the recipes for images, a fast learner is idle while environments play. "
            "More env-servers shorten that time; `--no-wait-for-updates` trains meanwhile, on older data.",
        ],
    ),
    "KubeBeastRankStarved": Alert(
        severity="warning",
        expr=unfinished(_STARVED_RANKS),
        hold="$patient",
        summary=f"A learner of {WHERE} has too few env-servers.",
        says="Rank {{ $labels.rank }} contributed nothing to {{ $value | humanizePercentage }} of the updates.",
        meaning="One of several learners (a rank) often has no batch, so the others train without it: batches are "
        "smaller, and its GPU is idle. While this alert fires, KubeBeastLearnerStarved and KubeBeastFleetIdle do not, "
        "because the remedy is the same: more streams for this learner.",
        panels=["Streams", "Updates without a share", "Time spent waiting"],
        steps=[
            "`kubebeast fleet` shows the streams of each learner. Streams choose a learner by chance: if there are "
            "few, raise numStreams or the replicas of the env-servers.",
            "If a learner has no streams, check that env-servers can reach its pod. Their log contains the address.",
        ],
    ),
    "KubeBeastFleetIdle": Alert(
        severity="info",
        expr=unfinished(f"max by (cluster, namespace, job) ({parked_share('$window', of='')}) > 0.5{_UNLESS_RANKS}"),
        hold="$lenient",
        summary=f"The env-servers of {WHERE} wait for the learner.",
        says="On average {{ $value | humanizePercentage }} of the streams were held back by a full rollout queue.",
        meaning="Env-servers cost money but are not used: the learner is the bottleneck.",
        panels=["Time spent waiting", "Rollout queue", "Phases of an update"],
        steps=[
            "Remove env-servers, or let an autoscaler choose their number.",
            "Or make the learner faster: use a GPU, or a larger batch_size if it has one.",
        ],
    ),
    "KubeBeastStreamChurn": Alert(
        severity="warning",
        expr=unfinished("""\
sum by (cluster, namespace, job) (increase(kubebeast_streams_ended_total{reason!~"bye|closed"}[$window]))
> clamp_min(
  sum by (cluster, namespace, job) (
    max by (cluster, namespace, job, rank) (avg_over_time(kubebeast_streams[$window]))
  ),
  1
)"""),
        hold="$patient",
        summary=f"Streams of {WHERE} come and go.",
        says="About {{ $value | humanize }} streams were lost in $window, more than the fleet has.",
        meaning="Within $window, more streams ended without a Bye than are connected on average. Only steps in "
        "progress are lost, but episodes are cut short, and the fleet keeps restarting.",
        panels=["Streams that end or are turned away", "Reconnects", "Failures of environments"],
        steps=[
            "Compare the ended streams by reason at the learner, and by code at the env-servers.",
            "disconnect: look for restarts and evictions of env-server pods, spot nodes, and network failures.",
            "timeout: environments are slower than step_timeout_s, or throttled.",
            "invalid: an env-server breaks the protocol. Both logs contain the field.",
        ],
    ),
    "KubeBeastStreamsRefused": Alert(
        severity="warning",
        expr=unfinished("""\
max by (cluster, namespace, job) (
  increase(kubebeast_streams_refused_total[$window]) + increase(kubebeast_streams_unauthenticated_total[$window])
) > 0
or
sum by (cluster, namespace, job) (
  increase(kubebeast_connections_refused_total{reason=~"plaintext|tls|no_call"}[$window])
) > 0"""),
        hold="$patient",
        summary=f"The learner of {WHERE} refuses streams.",
        says="It refuses about {{ $value | humanize }} in $window, for $patient or more.",
        meaning="The learner keeps refusing an env-server that does not match the run or has no valid token. Its pod "
        "is restarted again and again, and its CPU costs money.",
        panels=["Streams that end or are turned away", "Places taken", "Reconnects"],
        steps=[
            "The learner's log contains the host and the reason, and the env-server's log contains the field.",
            "Without a valid token: check the Secret that both mount, and that both have its newest version.",
            "A connection without a stream: only one side uses TLS, or a certificate is missing, expired or of "
            "another authority.",
            "Other shapes: the env-server has another environment or version. max_streams, max_envs and "
            "max_envs_per_stream are limits.",
        ],
    ),
}
