"""The row about what would be lost, and what the machines have left."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Query, Row
from dashboard.promql import of_release

_STARTS = f"{of_release('1 + changes(kubebeast_learner_start_time_seconds{%s}[1h])', aggregate='sum')} - 1"

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
            title="Starts of the learner",
            good="0, except after an upgrade or a drained node. Every start repeats what was learnt since the newest "
            "checkpoint; vertical lines in all panels mark them.",
            unit="short",
            width=6,
            queries=[Query(_STARTS, "in an hour")],
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
            width=24,
            queries=[
                Query("kubebeast_build_info{%s}", "learner {{version}}, torch {{torch}} on {{device}}"),
                Query(
                    of_release("kubebeast_envserver_build_info{%s}", "version, env_id", aggregate="count"),
                    "env-servers {{version}}, {{env_id}}",
                ),
                Query("kubebeast_run_info{%s}", "run {{run_id}}"),
            ],
            names_only=True,
        ),
    ],
)
