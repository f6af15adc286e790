"""The row about what would be lost, and what the machines have left."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Panels, Stat
from dashboard.promql import of_release, total

_STARTS = f"{of_release(total('1 + changes(kubebeast_learner_start_time_seconds{%s}[1h])', 'rank'))} - 1"

SAFETY: Panels = {
    "Age of the last checkpoint": Panel(
        good="A saw-tooth as high as checkpoint_interval_minutes. A crash loses as much.",
        unit="s",
        queries={"age": "kubebeast_checkpoint_age_seconds{%s}"},
    ),
    "Duration of a checkpoint": Panel(
        good="Seconds, and level; training stands still meanwhile. Growing: the volume is slow or shared.",
        unit="s",
        queries=spread("kubebeast_checkpoint_seconds", "to save"),
    ),
    "Size of a checkpoint": Stat(
        good="Level. keep_checkpoints times this must fit the volume.",
        unit="bytes",
        queries={"newest": "kubebeast_checkpoint_bytes{%s}"},
    ),
    "Checkpoints that failed": Panel(
        good="0. Otherwise the volume is full or gone: the learner's log has the error.",
        queries={"in an hour": "increase(kubebeast_checkpoint_failures_total{%s}[1h])"},
    ),
    "Memory of the learner": Panel(
        good="Level after the first minutes, well below the limit. Growing for hours: a leak; the pod will be killed "
        "at its limit.",
        unit="bytes",
        queries={"resident": "process_resident_memory_bytes{%s} and on (instance) kubebeast_streams{%s}"},
    ),
    "Starts of the learner": Panel(
        good="0, except after an upgrade or a drained node. Every start repeats what was learnt since the newest "
        "checkpoint; vertical lines in all panels mark them.",
        queries={"in an hour": _STARTS},
    ),
    "GPU memory": Panel(
        good="Level, below 100 %. Nothing is shown where there is no GPU.",
        unit="percentunit",
        ceiling=1,
        queries={"device {{device}}": "kubebeast_gpu_memory_used_bytes{%s} / kubebeast_gpu_memory_total_bytes{%s}"},
        levels=FILLED,
    ),
    "GPU at work": Panel(
        good="High and level. Low while the learner does not wait: updates are bound by the CPU, see their phases.",
        unit="percentunit",
        ceiling=1,
        queries={"device {{device}}": "kubebeast_gpu_busy_ratio{%s}"},
    ),
    "What runs": Stat(
        good="One version of learner and env-servers, except during an upgrade.",
        width=24,
        queries={
            "learner {{version}}, torch {{torch}} on {{device}}": of_release(
                "kubebeast_build_info{%s}", "version, torch, device", aggregate="count"
            ),
            "env-servers {{version}}, {{env_id}}": of_release(
                "kubebeast_envserver_build_info{%s}", "version, env_id", aggregate="count"
            ),
            "run {{run_id}}": of_release("kubebeast_run_info{%s}", "run_id"),
        },
        names_only=True,
    ),
}
