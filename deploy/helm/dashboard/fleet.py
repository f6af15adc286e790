"""The row about the env-servers, and about the pods that cause a problem."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Panels
from dashboard.promql import mean, rate, total

_POD = "pod, kubebeast_group"

FLEET: Panels = {
    "Streams": Panel(
        good="Good: configured, connected and at the learner are equal. If configured is above connected, see "
        "Reconnects. Missed, which the rules record, is 0: it counts streams that left without a Bye and were not "
        "replaced.",
        queries={
            "at the learner": "kubebeast_streams{%s}",
            "connected: {{kubebeast_group}}": total("kubebeast_envserver_streams_connected{%s}", "kubebeast_group"),
            "configured: {{kubebeast_group}}": total("kubebeast_envserver_streams{%s}", "kubebeast_group"),
            "missed": "kubebeast_streams_missed{%s}",
        },
    ),
    "Places taken": Panel(
        good="Good: below 100 %. At 100 %, additional env-servers are refused: raise max_envs.",
        unit="percentunit",
        ceiling=1,
        queries={"environments of those that fit": "kubebeast_envs{%s} / (kubebeast_slots{%s} > 0)"},
        levels=FILLED,
    ),
    "Streams that end or are turned away": Panel(
        good="Good: near 0 unless the fleet changes; bye is an intended end. Disconnect: pods die or the network "
        "fails. Refused: an env-server does not fit. Without a token: check the Secret. No stream: usually TLS; "
        "docs/security.md explains the reasons.",
        unit="ops",
        queries={
            "ended: {{reason}}": rate("kubebeast_streams_ended_total"),
            "refused": rate("kubebeast_streams_refused_total"),
            "without a token": rate("kubebeast_streams_unauthenticated_total"),
            "no stream: {{reason}}": rate("kubebeast_connections_refused_total", 'reason!="closed"'),
            "failed dials": rate("kubebeast_dials_failed_total"),
        },
    ),
    "Reconnects": Panel(
        good="Good: near 0 unless the fleet changes. Unavailable: the learner or the network. Invalid_argument: "
        "shapes or versions. Unauthenticated: the token.",
        unit="ops",
        queries={
            "{{code}}": total(rate("kubebeast_envserver_disconnects_total"), "code"),
            "attempts: {{outcome}}": total(rate("kubebeast_envserver_connects_total"), "outcome"),
        },
    ),
    "Failures of environments": Panel(
        good="Good: 0, or rare and spread over the pods. The table below shows the pods, and their logs contain the "
        "reasons.",
        unit="ops",
        queries={"{{kind}}": total(rate("kubebeast_envserver_env_failures_total"), "kind")},
    ),
    "Restarts and quarantine": Panel(
        good="Good: 0. A quarantined environment or stream stays away until its pod is replaced.",
        queries={
            "environments, in an hour": total("increase(kubebeast_envserver_env_restarts_total{%s}[1h])"),
            "streams, in an hour": total("increase(kubebeast_envserver_stream_restarts_total{%s}[1h])"),
            "environments quarantined": total("kubebeast_envserver_envs_quarantined{%s}"),
            "streams quarantined": total("kubebeast_envserver_streams_quarantined{%s}"),
        },
    ),
    "Time of environments": Panel(
        good="Good: level, and p99 near p50. If all pods are slower, check the environments and the CPU. If the gap "
        "is wide, the table below shows the slow pod.",
        unit="s",
        queries={
            **spread("kubebeast_envserver_step_seconds", "step of {{kubebeast_group}}", by="kubebeast_group"),
            **spread("kubebeast_envserver_reset_seconds", "reset of {{kubebeast_group}}", by="kubebeast_group"),
        },
    ),
    "Pods, the slowest first": Panel(
        good="Good: the pods of a group are alike. If one is far slower, the cause is its node or its CPU limit: "
        "delete it, and a new pod starts elsewhere. If one has failures, read its log.",
        kind="table",
        width=16,
        queries={
            "step": mean("kubebeast_envserver_step_seconds", by=_POD),
            "wait for actions": mean("kubebeast_envserver_action_wait_seconds", by=_POD),
            "env-steps": total(rate("kubebeast_envserver_env_steps_total"), _POD),
            "failures in an hour": total("increase(kubebeast_envserver_env_failures_total{%s}[1h])", _POD),
            "quarantined": total("kubebeast_envserver_envs_quarantined{%s}", _POD),
        },
        column_units={"step": "s", "wait for actions": "s", "env-steps": "ops"},
    ),
}
