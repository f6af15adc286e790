"""The row about possible losses, and about the free resources of the machines."""

from dashboard.bottleneck import spread
from dashboard.grafana import FILLED, Panel, Panels, Stat
from dashboard.promql import of_release, total

_STARTS = f"{of_release(total('1 + changes(kubebeast_learner_start_time_seconds{%s}[1h])', 'rank'))} - 1"

SAFETY: Panels = {
    "Age of the last checkpoint": Panel(
        good="Good: a sawtooth as high as checkpoint_interval_minutes. A crash loses this much training.",
        unit="s",
        queries={"age": "kubebeast_checkpoint_age_seconds{%s}"},
    ),
    "Duration of a checkpoint": Panel(
        good="Good: seconds, and level. Training stands still for this time. If it grows, the volume is slow or "
        "shared.",
        unit="s",
        queries=spread("kubebeast_checkpoint_seconds", "to save"),
    ),
    "Size of a checkpoint": Stat(
        good="Good: level. keep_checkpoints times this size must fit on the volume.",
        unit="bytes",
        queries={"newest": "kubebeast_checkpoint_bytes{%s}"},
    ),
    "Checkpoints that failed": Panel(
        good="Good: 0. Otherwise the volume is full or gone: the learner's log contains the error.",
        queries={"in an hour": "increase(kubebeast_checkpoint_failures_total{%s}[1h])"},
    ),
    "Free space of the volume": Panel(
        good="Good: level, and many times the size of a checkpoint. At 0, rows are dropped and checkpoints fail.",
        unit="bytes",
        width=12,
        queries={"free": "kubebeast_run_free_bytes{%s}"},
    ),
    "Writes that failed": Panel(
        good="Good: 0. Otherwise rows of the file are missing: the volume is full or gone.",
        width=12,
        queries={"{{file}} in an hour": "increase(kubebeast_run_write_failures_total{%s}[1h])"},
    ),
    "Memory of the learner": Panel(
        good="Good: level after the first minutes, and well below the limit. If it grows for hours, there is a leak, "
        "and the pod will be killed at its limit.",
        unit="bytes",
        queries={"resident": "process_resident_memory_bytes{%s} and on (instance) kubebeast_streams{%s}"},
    ),
    "Starts of the learner": Panel(
        good="Good: 0, except after an upgrade or the drain of a node. Every start repeats the training since the "
        "newest checkpoint. Vertical lines in all panels mark the starts.",
        queries={"in an hour": _STARTS},
    ),
    "GPU memory": Panel(
        good="Good: level, and below 100 %. Empty if there is no GPU.",
        unit="percentunit",
        ceiling=1,
        queries={"device {{device}}": "kubebeast_gpu_memory_used_bytes{%s} / kubebeast_gpu_memory_total_bytes{%s}"},
        levels=FILLED,
    ),
    "GPU at work": Panel(
        good="Good: high and level. If it is low while the learner does not wait, the CPU limits the updates: see "
        "their phases.",
        unit="percentunit",
        ceiling=1,
        queries={"device {{device}}": "kubebeast_gpu_busy_ratio{%s}"},
    ),
    "Versions": Stat(
        good="Good: one version of learner and env-servers, except during an upgrade.",
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
