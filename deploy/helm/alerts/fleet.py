"""Alerts on the fleet as the learner sees it: enough streams, not too many, and the same ones for a while."""

from alerts.rule import WHERE, Alert, unfinished
from dashboard.promql import parked_share

FLEET = {
    "KubeBeastNoStreams": Alert(
        severity="critical",
        expr=unfinished("max by (cluster, namespace, job) (kubebeast_streams) == 0"),
        hold="$calm",
        summary=f"No env-server plays for {WHERE}.",
        says="The learner runs and has had no stream for $calm.",
        meaning="Nothing is learnt.",
        panels=["Streams", "Reconnects", "Streams that end or are turned away"],
        steps=[
            "kubectl get deployments with the label app.kubernetes.io/component=envserver: are there replicas, and "
            "are they available?",
            "An env-server's log: refused names the field that does not fit, unreachable asks for the Service, the "
            "NetworkPolicy and TLS.",
            "The learner's log names the streams that it refused.",
            "Scaled to nothing on purpose: silence the alert while the run pauses.",
        ],
    ),
    "KubeBeastLearnerStarved": Alert(
        severity="warning",
        expr=unfinished("""\
max by (cluster, namespace, job) (
  avg_over_time(kubebeast_learner_starved_ratio[$window])
) > 0.5"""),
        hold="$patient",
        summary=f"The learner of {WHERE} waits for rollouts.",
        says="It waited {{ $value | humanizePercentage }} of the time.",
        meaning="More env-servers make the training faster, unless inference, the learner's CPUs or old data are the "
        "limit: the verdict says which.",
        panels=["Verdict", "Time spent waiting", "Fleets that could be used", "Pods, the slowest first"],
        steps=[
            "Demand ratio well above 1: scale the env-servers' Deployment, or raise maxReplicas where it scales by "
            "itself.",
            "Demand ratio near 1 or below: more env-servers would only wait. Do what the verdict asks for: a GPU, "
            "more inference threads, more CPUs for the learner, or fewer environments.",
            "Pods that are Pending ask for nodes; env-servers that are throttled (CPU limits) for more CPU.",
        ],
    ),
    "KubeBeastRankStarved": Alert(
        severity="warning",
        expr=unfinished("""\
max by (cluster, namespace, job, rank) (
  increase(kubebeast_empty_shares_total[$window])
  / (increase(kubebeast_updates_total[$window]) > 0)
) > 0.5"""),
        hold="$patient",
        summary=f"A learner of {WHERE} has too few env-servers.",
        says="Rank {{ $labels.rank }} brought nothing to {{ $value | humanizePercentage }} of the updates.",
        meaning="The others train without its share: batches are smaller, and a GPU computes nothing.",
        panels=["Streams", "Updates without a share", "Time spent waiting"],
        steps=[
            "kubebeast fleet shows the streams of each learner. Streams choose a learner by chance: with few of them "
            "raise numStreams or the env-servers' replicas.",
            "A learner without any: can env-servers reach its pod? Their log names the address.",
        ],
    ),
    "KubeBeastFleetIdle": Alert(
        severity="info",
        expr=unfinished(f"max by (cluster, namespace, job) ({parked_share('$window', of='')}) > 0.5"),
        hold="$lenient",
        summary=f"The env-servers of {WHERE} wait for the learner.",
        says="On average {{ $value | humanizePercentage }} of the streams were held back by a full rollout queue.",
        meaning="Env-servers are paid for and not used: the learner is the bottleneck.",
        panels=["Time spent waiting", "Rollout queue", "Phases of an update"],
        steps=[
            "Remove env-servers, or let an autoscaler decide on their number.",
            "Or make the learner faster: a GPU, or a larger batch_size where it has one.",
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
        says="About {{ $value | humanize }} streams were lost in $window, more than there are.",
        meaning="Only steps under way are lost, but episodes are cut short, and the fleet keeps starting.",
        panels=["Streams that end or are turned away", "Reconnects", "Failures of environments"],
        steps=[
            "Streams that ended, by reason, at the learner; by code at the env-servers.",
            "disconnect: restarts and evictions of env-server pods, spot nodes, the network.",
            "timeout: environments slower than step_timeout_s, or throttled.",
            "invalid: an env-server that breaks the contract; both logs name the field.",
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
        summary=f"The learner of {WHERE} turns streams away.",
        says="About {{ $value | humanize }} in $window, for $patient or more.",
        meaning="An env-server that does not fit dials again and again, and its CPU is paid for.",
        panels=["Streams that end or are turned away", "Places taken", "Reconnects"],
        steps=[
            "The learner's log names the host and the reason, the env-server's log the field.",
            "Without a valid token: the Secret that both mount, and whether both have the newest.",
            "A connection without a stream: TLS on one side only, or a certificate that is missing, expired or of "
            "another authority.",
            "Other shapes: an env-server of another environment or version; max_streams, max_envs and "
            "max_envs_per_stream are bounds.",
        ],
    ),
}
