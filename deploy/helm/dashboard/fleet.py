"""The row about the env-servers, and which pod is to blame."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Panels
from dashboard.promql import mean, rate, total

_POD = "pod, kubebeast_group"

FLEET: Panels = {
    "Streams": Panel(
        good="Configured, connected and at the learner are the same. Configured above connected: see Reconnects. "
        "Missed, recorded by the rules: 0; such streams left without a Bye and were not replaced.",
        queries={
            "at the learner": "kubebeast_streams{%s}",
            "connected: {{kubebeast_group}}": total("kubebeast_envserver_streams_connected{%s}", "kubebeast_group"),
            "configured: {{kubebeast_group}}": total("kubebeast_envserver_streams{%s}", "kubebeast_group"),
            "missed": "kubebeast_streams_missed{%s}",
        },
    ),
    "Places taken": Panel(
        good="Below 100 %. Full: further env-servers are refused; raise max_envs.",
        unit="percentunit",
        ceiling=1,
        queries={"environments of those that fit": "kubebeast_envs{%s} / (kubebeast_slots{%s} > 0)"},
        levels=FILLED,
    ),
    "Streams that end or are turned away": Panel(
        good="Near 0 unless the fleet changes; bye is a wanted end. Disconnect: pods die or the network fails. "
        "Refused: an env-server that does not fit. Without a token: the Secret. No stream: most often TLS, "
        "docs/security.md explains the words.",
        unit="ops",
        queries={
            "ended: {{reason}}": rate("kubebeast_streams_ended_total"),
            "refused": rate("kubebeast_streams_refused_total"),
            "without a token": rate("kubebeast_streams_unauthenticated_total"),
            "no stream: {{reason}}": rate("kubebeast_connections_refused_total", 'reason!="closed"'),
            "dialled in vain": rate("kubebeast_dials_failed_total"),
        },
    ),
    "Reconnects": Panel(
        good="Near 0 unless the fleet changes. Unavailable: the learner or the network. Invalid_argument: shapes or "
        "versions. Unauthenticated: the token.",
        unit="ops",
        queries={
            "{{code}}": total(rate("kubebeast_envserver_disconnects_total"), "code"),
            "attempts: {{outcome}}": total(rate("kubebeast_envserver_connects_total"), "outcome"),
        },
    ),
    "Failures of environments": Panel(
        good="0, or rare and spread over the pods. The table below says which pods, their logs say why.",
        unit="ops",
        queries={"{{kind}}": total(rate("kubebeast_envserver_env_failures_total"), "kind")},
    ),
    "Restarts and quarantine": Panel(
        good="0. What is quarantined stays away until its pod is replaced.",
        queries={
            "environments, in an hour": total("increase(kubebeast_envserver_env_restarts_total{%s}[1h])"),
            "streams, in an hour": total("increase(kubebeast_envserver_stream_restarts_total{%s}[1h])"),
            "environments quarantined": total("kubebeast_envserver_envs_quarantined{%s}"),
            "streams quarantined": total("kubebeast_envserver_streams_quarantined{%s}"),
        },
    ),
    "Time of environments": Panel(
        good="Level, and p99 near p50. All pods slower: the environments or the CPU. A wide gap: see which pod, in "
        "the table below.",
        unit="s",
        queries={
            **spread("kubebeast_envserver_step_seconds", "step of {{kubebeast_group}}", by="kubebeast_group"),
            **spread("kubebeast_envserver_reset_seconds", "reset of {{kubebeast_group}}", by="kubebeast_group"),
        },
    ),
    "Pods, the slowest first": Panel(
        good="Pods of a group are alike. One far slower: its node, or its CPU limit; delete it, a new one comes "
        "elsewhere. One with failures: its log.",
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
