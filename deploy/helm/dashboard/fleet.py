"""Rows about the env-servers and whether learner and fleet fit each other."""

from dashboard.grafana import Panel, Query, Row

BOTTLENECK = Row(
    "Who is the bottleneck?",
    [
        Panel(
            title="Time spent waiting",
            good="Both below 20 %: fleet and learner fit. Learner high: more env-servers. Streams high: fewer of them, "
            "or a faster learner.",
            unit="percentunit",
            ceiling=1,
            width=6,
            queries=[
                Query("kubebeast_learner_starved_ratio{%s}", "learner, for rollouts"),
                Query("kubebeast_streams_parked{%s} / kubebeast_streams{%s}", "streams, for the learner"),
            ],
        ),
        Panel(
            title="Fleets that the learner could use",
            good="Near 1. At 2 the learner could use twice the env-servers, at 0.5 half of them do. Recorded by the "
            "chart's rules.",
            unit="short",
            width=6,
            queries=[Query("kubebeast_learner_demand_ratio{%s}", "times the present one")],
        ),
        Panel(
            title="Rollouts queued",
            good="Neither always 0 (the fleet is short) nor always full (the fleet waits).",
            unit="short",
            width=6,
            queries=[Query("kubebeast_rollouts_queued{%s}", "wait for the learner")],
        ),
        Panel(
            title="Rows of an inference batch",
            good="Well above the environments of one stream: inference serves many streams at once.",
            unit="short",
            width=6,
            queries=[
                Query(
                    "rate(kubebeast_inference_rows_total{%s}[$__rate_interval])"
                    " / rate(kubebeast_inference_batches_total{%s}[$__rate_interval])",
                    "mean",
                )
            ],
        ),
    ],
)

FLEET = Row(
    "Is the fleet healthy?",
    [
        Panel(
            title="Streams",
            good="As many as the env-servers offer, and the same on both sides.",
            unit="short",
            width=6,
            queries=[
                Query("kubebeast_streams{%s}", "at the learner"),
                Query(
                    "sum by (kubebeast_group) (kubebeast_envserver_streams_connected{%s})",
                    "connected: {{kubebeast_group}}",
                ),
            ],
        ),
        Panel(
            title="Reconnects",
            good="Near 0 unless the fleet changes. Refused: an env-server that does not fit, or a wrong token.",
            unit="ops",
            width=6,
            queries=[
                Query("rate(kubebeast_streams_ended_total{%s}[$__rate_interval])", "ended: {{reason}}"),
                Query("rate(kubebeast_streams_refused_total{%s}[$__rate_interval])", "refused"),
                Query("rate(kubebeast_streams_unauthenticated_total{%s}[$__rate_interval])", "without a token"),
            ],
        ),
        Panel(
            title="Failures of environments",
            good="0, or rare and spread over the pods.",
            unit="ops",
            width=6,
            queries=[
                Query("sum by (kind) (rate(kubebeast_envserver_env_failures_total{%s}[$__rate_interval]))", "{{kind}}")
            ],
        ),
        Panel(
            title="Restarts and quarantine",
            good="0. What is quarantined stays away until its pod is replaced.",
            unit="short",
            width=6,
            queries=[
                Query("sum(increase(kubebeast_envserver_env_restarts_total{%s}[1h]))", "environments, in an hour"),
                Query("sum(increase(kubebeast_envserver_stream_restarts_total{%s}[1h]))", "streams, in an hour"),
                Query("sum(kubebeast_envserver_envs_quarantined{%s})", "environments quarantined"),
                Query("sum(kubebeast_envserver_streams_quarantined{%s})", "streams quarantined"),
            ],
        ),
    ],
)
