"""The row about what would be lost, and what the machines have left."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Query, Row

SAFETY = Row(
    "Is it safe?",
    [
        Panel(
            title="Age of the last checkpoint",
            good="A saw-tooth as high as checkpoint_interval_minutes. A crash loses as much.",
            unit="s",
            width=6,
            queries=[Query("kubebeast_checkpoint_age_seconds{%s}", "age")],
        ),
        Panel(
            title="Duration of a checkpoint",
            good="Seconds, and level; training stands still meanwhile. Growing: the volume is slow or shared.",
            unit="s",
            width=6,
            queries=spread("kubebeast_checkpoint_seconds", "to save"),
        ),
        Panel(
            title="Size of a checkpoint",
            good="Level. keep_checkpoints times this must fit the volume.",
            unit="bytes",
            kind="stat",
            width=6,
            queries=[Query("kubebeast_checkpoint_bytes{%s}", "newest")],
        ),
        Panel(
            title="Checkpoints that failed",
            good="0. Otherwise the volume is full or gone: the learner's log has the error.",
            unit="short",
            width=6,
            queries=[Query("increase(kubebeast_checkpoint_failures_total{%s}[1h])", "in an hour")],
        ),
        Panel(
            title="Memory of the learner",
            good="Level after the first minutes, well below the limit. Growing for hours: a leak; the pod will be "
            "killed at its limit.",
            unit="bytes",
            width=6,
            queries=[Query("process_resident_memory_bytes{%s} and on (instance) kubebeast_streams{%s}", "resident")],
        ),
        Panel(
            title="GPU memory",
            good="Level, below 100 %. Nothing is shown where there is no GPU.",
            unit="percentunit",
            ceiling=1,
            width=6,
            queries=[
                Query("kubebeast_gpu_memory_used_bytes{%s} / kubebeast_gpu_memory_total_bytes{%s}", "device {{device}}")
            ],
            levels=FILLED,
        ),
        Panel(
            title="GPU at work",
            good="High and level. Low while the learner does not wait: updates are bound by the CPU, see their phases.",
            unit="percentunit",
            ceiling=1,
            width=6,
            queries=[Query("kubebeast_gpu_busy_ratio{%s}", "device {{device}}")],
        ),
        Panel(
            title="What runs",
            good="One version of learner and env-servers, except during an upgrade.",
            unit="short",
            kind="stat",
            width=6,
            queries=[
                Query("kubebeast_build_info{%s}", "learner {{version}}, torch {{torch}} on {{device}}"),
                Query(
                    "count by (version, env_id) (kubebeast_envserver_build_info{%s})",
                    "env-servers {{version}}, {{env_id}}",
                ),
                Query("kubebeast_run_info{%s}", "run {{run_id}}"),
            ],
            names_only=True,
        ),
    ],
)
