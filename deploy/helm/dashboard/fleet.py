"""The row about the env-servers, and which pod is to blame."""

from dashboard.bottleneck import WINDOW, spread
from dashboard.grafana import FILLED, Panel, Query, Row
from dashboard.promql import RELEASE, mean

_POD = f"{RELEASE}, pod, kubebeast_group"

FLEET = Row(
    "Is the fleet healthy?",
    [
        Panel(
            title="Streams",
            good="Configured, connected and at the learner are the same. Configured above connected: see Reconnects. "
            "Missed, recorded by the rules: 0; such streams left without a Bye and were not replaced.",
            unit="short",
            queries=[
                Query("kubebeast_streams{%s}", "at the learner"),
                Query(
                    f"sum by ({RELEASE}, kubebeast_group) (kubebeast_envserver_streams_connected{{%s}})",
                    "connected: {{kubebeast_group}}",
                ),
                Query(
                    f"sum by ({RELEASE}, kubebeast_group) (kubebeast_envserver_streams{{%s}})",
                    "configured: {{kubebeast_group}}",
                ),
                Query("kubebeast_streams_missed{%s}", "missed"),
            ],
        ),
        Panel(
            title="Places taken",
            good="Below 100 %. Full: further env-servers are refused; raise max_envs.",
            unit="percentunit",
            ceiling=1,
            queries=[Query("kubebeast_envs{%s} / (kubebeast_slots{%s} > 0)", "environments of those that fit")],
            levels=FILLED,
        ),
        Panel(
            title="Streams that end or are turned away",
            good="Near 0 unless the fleet changes; bye is a wanted end. Disconnect: pods die or the network fails. "
            "Refused: an env-server that does not fit. Without a token: the Secret. No stream: most often TLS, "
            "docs/security.md explains the words.",
            unit="ops",
            queries=[
                Query("rate(kubebeast_streams_ended_total{%s}[$__rate_interval])", "ended: {{reason}}"),
                Query("rate(kubebeast_streams_refused_total{%s}[$__rate_interval])", "refused"),
                Query("rate(kubebeast_streams_unauthenticated_total{%s}[$__rate_interval])", "without a token"),
                Query(
                    'rate(kubebeast_connections_refused_total{%s, reason!="closed"}[$__rate_interval])',
                    "no stream: {{reason}}",
                ),
                Query("rate(kubebeast_dials_failed_total{%s}[$__rate_interval])", "dialled in vain"),
            ],
        ),
        Panel(
            title="Reconnects",
            good="Near 0 unless the fleet changes. Unavailable: the learner or the network. Invalid_argument: shapes "
            "or versions. Unauthenticated: the token.",
            unit="ops",
            queries=[
                Query(
                    f"sum by ({RELEASE}, code) (rate(kubebeast_envserver_disconnects_total{{%s}}[$__rate_interval]))",
                    "{{code}}",
                ),
                Query(
                    f"sum by ({RELEASE}, outcome) (rate(kubebeast_envserver_connects_total{{%s}}[$__rate_interval]))",
                    "attempts: {{outcome}}",
                ),
            ],
        ),
        Panel(
            title="Failures of environments",
            good="0, or rare and spread over the pods. The table below says which pods, their logs say why.",
            unit="ops",
            queries=[
                Query(
                    f"sum by ({RELEASE}, kind) (rate(kubebeast_envserver_env_failures_total{{%s}}[$__rate_interval]))",
                    "{{kind}}",
                )
            ],
        ),
        Panel(
            title="Restarts and quarantine",
            good="0. What is quarantined stays away until its pod is replaced.",
            unit="short",
            queries=[
                Query(
                    f"sum by ({RELEASE}) (increase(kubebeast_envserver_env_restarts_total{{%s}}[1h]))",
                    "environments, in an hour",
                ),
                Query(
                    f"sum by ({RELEASE}) (increase(kubebeast_envserver_stream_restarts_total{{%s}}[1h]))",
                    "streams, in an hour",
                ),
                Query(f"sum by ({RELEASE}) (kubebeast_envserver_envs_quarantined{{%s}})", "environments quarantined"),
                Query(f"sum by ({RELEASE}) (kubebeast_envserver_streams_quarantined{{%s}})", "streams quarantined"),
            ],
        ),
        Panel(
            title="Time of environments",
            good="Level, and p99 near p50. All pods slower: the environments or the CPU. A wide gap: see which pod, "
            "in the table below.",
            unit="s",
            queries=[
                *spread("kubebeast_envserver_step_seconds", "step of {{kubebeast_group}}", by="kubebeast_group"),
                *spread("kubebeast_envserver_reset_seconds", "reset of {{kubebeast_group}}", by="kubebeast_group"),
            ],
        ),
        Panel(
            title="Pods, the slowest first",
            good="Pods of a group are alike. One far slower: its node, or its CPU limit; delete it, a new one comes "
            "elsewhere. One with failures: its log.",
            unit="short",
            kind="table",
            width=16,
            queries=[
                Query(mean("kubebeast_envserver_step_seconds", WINDOW, of="{%s}", by=_POD), "step", unit="s"),
                Query(
                    mean("kubebeast_envserver_action_wait_seconds", WINDOW, of="{%s}", by=_POD),
                    "wait for actions",
                    unit="s",
                ),
                Query(
                    f"sum by ({_POD}) (rate(kubebeast_envserver_env_steps_total{{%s}}[{WINDOW}]))",
                    "env-steps",
                    unit="ops",
                ),
                Query(
                    f"sum by ({_POD}) (increase(kubebeast_envserver_env_failures_total{{%s}}[1h]))",
                    "failures in an hour",
                ),
                Query(f"sum by ({_POD}) (kubebeast_envserver_envs_quarantined{{%s}})", "quarantined"),
            ],
        ),
    ],
)
