"""Displayed state of a learner at one moment, computed from two looks at it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.filesize import decimal

from kubebeast_common.pool.demand import demand_ratio, make_loads
from kubebeast_observe.numbers import mean
from kubebeast_observe.scrape import Metrics, growth, quantiles, rate
from kubebeast_observe.top.poller import Look, Looks
from kubebeast_observe.top.ranks import RankRow, starved_ranks
from kubebeast_observe.top.rows import EnvServer, make_rows
from kubebeast_observe.top.tasks import TaskRow, task_rows
from kubebeast_observe.top.verdict import Verdict, judge

ALMOST_FULL_BYTES = 256 << 20
"""Free space below which a volume with less than a tenth left counts as almost full."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of a time in seconds over the window; None if nothing was observed."""

    p50_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class Gpu:
    device: str
    busy_ratio: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Displayed state of a learner. Unknown values are None. The field names are the keys of the JSON object."""

    source: str
    run_id: str
    verdict: Verdict
    step: int | None
    total_steps: int | None
    steps_per_second: float | None
    """Env-steps trained on."""
    eta_s: float | None
    episodes: int | None
    episode_return_mean: float | None
    starved_ratio: float | None
    """Share of time that the learner waited for rollouts."""
    inference_busy_ratio: float | None
    cpu_busy_ratio: float | None
    """Busy share of the machine, or of the learner's container if there is one, over the window."""
    parked_ratio: float | None
    """Share of time that streams were held back by a full rollout queue."""
    demand_ratio: float | None
    """Size of the fleet that could be used, as a multiple of the present one."""
    rollouts_queued: int | None
    rollout_queue_room: int | None
    """Unrolls that may wait at the present number of running ones."""
    streams: int | None
    envs: int | None
    slots: int | None
    """Maximum number of environments at once."""
    rows_per_batch: float | None
    """Rows of an inference batch."""
    inference_queue_wait: Spread
    inference_model: Spread
    policy_lag_updates: float | None
    rho_clipped_ratio: float | None
    policy_entropy_nats: float | None
    checkpoint_age_s: float | None
    run_free_bytes: int | None
    """Free bytes for the learner on the volume of the run's folder."""
    run_volume_bytes: int | None
    steps_dropped: int | None
    """Dropped env-steps since the learner's process started, for any reason."""
    troubles: dict[str, int]
    """Counts of unexpected events by name, since the learner's process started."""
    gpus: list[Gpu]
    tasks: list[TaskRow]
    """Tasks if there are several."""
    ranks: list[RankRow]
    """All learners by rank if there are several; the values above are either of all of them (steps, episodes, updates,
    checkpoints) or of the observed one.
    """
    env_servers: list[EnvServer]
    notes: list[str]
    """Missing parts of the view, with the reasons."""


TROUBLES = {
    "updates that were not finite": "kubebeast_updates_skipped_total",
    "failed checkpoints": "kubebeast_checkpoint_failures_total",
    "failed writes into the run's folder": "kubebeast_run_write_failures_total",
    "failed environments": "kubebeast_env_interruptions_total",
    "batches never answered": "kubebeast_inference_dropped_total",
    "streams refused": "kubebeast_streams_refused_total",
    "streams without a token": "kubebeast_streams_unauthenticated_total",
    "failed dials": "kubebeast_dials_failed_total",
    "restarts of actors": "kubebeast_actor_restarts_total",
}


def make_view(looks: Looks) -> View:
    """Computes the view of the newest look; rates are over the window between the two looks."""
    before, now = looks.before, looks.now
    metrics = now.metrics
    step, total_steps = metrics.count("kubebeast_learner_step"), metrics.count("kubebeast_learner_total_steps")
    speed = metrics.value("kubebeast_learner_steps_per_second")
    if speed is None:
        speed = rate(before, now, "kubebeast_learner_step")
    rows = _rows(before, now)
    streams = metrics.count("kubebeast_streams")
    starved = metrics.value("kubebeast_learner_starved_ratio")
    busy, cpu_busy = metrics.value("kubebeast_inference_busy_ratio"), _cpu_busy_ratio(looks)
    parked, lag = _parked_ratio(metrics, rows), metrics.value("kubebeast_policy_lag_updates")
    loads = make_loads(
        starved_ratio=starved, inference_busy_ratio=busy, cpu_busy_ratio=cpu_busy, policy_lag_updates=lag
    )
    left = max(0, total_steps - step) if step is not None and total_steps is not None else None
    hungry = starved_ranks(before.ranks if before else (), now.ranks, growth(before, now, "kubebeast_updates_total"))
    rank_ratio = len(now.ranks) / (len(now.ranks) - len(hungry)) if hungry else 0.0
    verdict = judge(
        is_finished=left == 0,
        streams=sum(rank.streams for rank in now.ranks) if now.ranks else streams,
        loads=loads,
        parked_ratio=parked,
        paused_groups=_paused_groups(now),
        starved_ranks=hungry,
    )
    return View(
        source=now.source,
        run_id=metrics.label("kubebeast_run_info", "run_id"),
        verdict=verdict,
        step=step,
        total_steps=total_steps,
        steps_per_second=speed,
        eta_s=left / speed if left is not None and speed else None,
        episodes=metrics.count("kubebeast_run_episodes"),
        episode_return_mean=metrics.value("kubebeast_episode_return_mean"),
        starved_ratio=starved,
        inference_busy_ratio=busy,
        cpu_busy_ratio=cpu_busy,
        parked_ratio=parked,
        demand_ratio=demand_ratio(loads, parked, rank_ratio) if "learner" in loads and parked is not None else None,
        rollouts_queued=metrics.count("kubebeast_rollouts_queued"),
        rollout_queue_room=_rollout_queue_room(metrics),
        streams=streams,
        envs=metrics.count("kubebeast_envs"),
        slots=metrics.count("kubebeast_slots"),
        rows_per_batch=_rows_per_batch(looks),
        inference_queue_wait=_spread(looks, "kubebeast_inference_queue_wait_seconds"),
        inference_model=_spread(looks, "kubebeast_inference_seconds", phase="model"),
        policy_lag_updates=lag,
        rho_clipped_ratio=metrics.value("kubebeast_rho_clipped_ratio"),
        policy_entropy_nats=metrics.value("kubebeast_policy_entropy_nats"),
        checkpoint_age_s=metrics.value("kubebeast_checkpoint_age_seconds"),
        run_free_bytes=metrics.count("kubebeast_run_free_bytes"),
        run_volume_bytes=metrics.count("kubebeast_run_volume_bytes"),
        steps_dropped=_dropped(metrics),
        troubles=_troubles(metrics),
        gpus=_gpus(metrics),
        tasks=task_rows(before, now),
        ranks=list(now.ranks),
        env_servers=rows,
        notes=[*([f"not up to date: {looks.problem}"] if looks.problem else []), *_shortage(metrics), *now.notes],
    )


def _rows(before: Look | None, now: Look) -> list[EnvServer]:
    elapsed_s = 0.0 if before is None else now.taken_at_s - before.taken_at_s
    pods = now.pods if now.streams is not None else {}  # pods without a stream are known only if the streams are
    return make_rows((before and before.streams) or (), now.streams or (), elapsed_s, pods)


def _parked_ratio(metrics: Metrics, rows: Sequence[EnvServer]) -> float | None:
    """Returns the share over the window if streams report it, else the current share."""
    over_window = mean(stream.parked_ratio for row in rows for stream in row.streams)
    if over_window is not None:
        return over_window
    parked, streams = metrics.value("kubebeast_streams_parked"), metrics.value("kubebeast_streams")
    return parked / streams if parked is not None and streams else None


def _rollout_queue_room(metrics: Metrics) -> int | None:
    capacity = metrics.count("kubebeast_rollout_queue_capacity")
    running = metrics.count("kubebeast_rollouts_running") or 0
    return None if capacity is None else max(0, capacity - running)


def _paused_groups(now: Look) -> list[str]:
    """Returns the names of all groups if all of them are scaled to zero."""
    return [group.group for group in now.groups] if all(group.desired == 0 for group in now.groups) else []


def _cpu_busy_ratio(looks: Looks) -> float | None:
    used = rate(looks.before, looks.now, "kubebeast_machine_cpu_seconds_total")
    num_cpus = looks.now.metrics.value("kubebeast_machine_cpus")
    return min(1.0, used / num_cpus) if used is not None and num_cpus else None


def _rows_per_batch(looks: Looks) -> float | None:
    names = "kubebeast_inference_rows_total", "kubebeast_inference_batches_total"
    rows, batches = (growth(looks.before, looks.now, name) for name in names)
    return rows / batches if rows is not None and batches else None


def _spread(looks: Looks, name: str, **labels: str) -> Spread:
    before = {} if looks.before is None else looks.before.metrics.buckets(name, **labels)
    return Spread(*quantiles(before, looks.now.metrics.buckets(name, **labels), (0.5, 0.99)))


def _troubles(metrics: Metrics) -> dict[str, int]:
    counts = {name: metrics.count(metric) for name, metric in TROUBLES.items()}
    refused = metrics.by_label("kubebeast_connections_refused_total", "reason")
    # Port probes are counted as closed, too.
    counts["connections without a stream"] = round(sum(refused.values()) - refused.get("closed", 0.0))
    return {name: count for name, count in counts.items() if count}


def _dropped(metrics: Metrics) -> int | None:
    outcomes = metrics.by_label("kubebeast_steps_total", "outcome")
    dropped = [count for outcome, count in outcomes.items() if outcome.startswith("dropped_")]
    return round(sum(dropped)) if dropped else None


def _shortage(metrics: Metrics) -> list[str]:
    """Returns a warning under the conditions of the alert KubeBeastVolumeFilling that need no history."""
    free, size = metrics.value("kubebeast_run_free_bytes"), metrics.value("kubebeast_run_volume_bytes")
    checkpoint = metrics.value("kubebeast_checkpoint_bytes") or 0.0
    if free is None or size is None or (free >= 10 * checkpoint and (free >= 0.1 * size or free >= ALMOST_FULL_BYTES)):
        return []
    return [f"the run's volume is almost full: {decimal(round(free))} of {decimal(round(size))} are free"]


def _gpus(metrics: Metrics) -> list[Gpu]:
    busy, used, total = (
        metrics.by_label(f"kubebeast_gpu_{name}", "device")
        for name in ("busy_ratio", "memory_used_bytes", "memory_total_bytes")
    )
    return [
        Gpu(device, busy.get(device), used.get(device), total.get(device)) for device in sorted({*busy, *used, *total})
    ]
