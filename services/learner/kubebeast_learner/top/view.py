"""What is shown of a learner at one moment, worked out from two looks at it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubebeast_learner.fleet.state import PodState
from kubebeast_learner.top.metrics_text import Metrics, quantiles
from kubebeast_learner.top.rows import Row, make_rows
from kubebeast_learner.top.scrape import Looks, Scrape
from kubebeast_learner.top.verdict import Verdict, judge


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Of a time in seconds, over the window; None where nothing was observed."""

    p50_s: float | None
    p99_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    device: str
    busy_ratio: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """None where the learner does not tell, or not yet. Its fields are the keys of the JSON object."""

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
    parked_ratio: float | None
    """Share of time that streams were held back by a full rollout queue."""
    rollouts_queued: int | None
    rollout_queue_capacity: int | None
    streams: int | None
    envs: int | None
    slots: int | None
    """Environments that fit at once."""
    rows_per_batch: float | None
    """Of inference."""
    inference_queue_wait: Spread
    inference_model: Spread
    policy_lag_updates: float | None
    rho_clipped_ratio: float | None
    policy_entropy_nats: float | None
    checkpoint_age_s: float | None
    steps_dropped: int | None
    """Since the learner's process started, for whatever reason."""
    troubles: dict[str, int]
    """What should not happen and did, by name, since the learner's process started."""
    gpus: list[Gpu]
    env_servers: list[Row]
    notes: list[str]
    """What could not be seen, and why."""


TROUBLES = {
    "updates that were not finite": "kubebeast_updates_skipped_total",
    "failed checkpoints": "kubebeast_checkpoint_failures_total",
    "failed environments": "kubebeast_env_interruptions_total",
    "batches never answered": "kubebeast_inference_dropped_total",
    "streams refused": "kubebeast_streams_refused_total",
    "streams without a token": "kubebeast_streams_unauthenticated_total",
    "dials in vain": "kubebeast_dials_failed_total",
    "restarts of actors": "kubebeast_actor_restarts_total",
}


def make_view(looks: Looks) -> View:
    """The numbers of the newest look; rates are over the time since the one before."""
    before, now = looks.before, looks.now
    metrics = now.metrics
    step, total_steps = _count(metrics, "kubebeast_learner_step"), _count(metrics, "kubebeast_learner_total_steps")
    rate = metrics.value("kubebeast_learner_steps_per_second")
    if rate is None:
        rate = _rate(looks, "kubebeast_learner_step")
    rows = _rows(before, now)
    streams = _count(metrics, "kubebeast_streams")
    starved = metrics.value("kubebeast_learner_starved_ratio")
    busy = metrics.value("kubebeast_inference_busy_ratio")
    parked = _parked_ratio(metrics, rows)
    left = max(0, total_steps - step) if step is not None and total_steps is not None else None
    verdict = judge(
        is_finished=left == 0,
        streams=streams,
        starved_ratio=starved,
        inference_busy_ratio=busy,
        parked_ratio=parked,
    )
    return View(
        source=now.source,
        run_id=metrics.label("kubebeast_run_info", "run_id"),
        verdict=verdict,
        step=step,
        total_steps=total_steps,
        steps_per_second=rate,
        eta_s=left / rate if left is not None and rate else None,
        episodes=_count(metrics, "kubebeast_episodes_total"),
        episode_return_mean=metrics.value("kubebeast_episode_return_mean"),
        starved_ratio=starved,
        inference_busy_ratio=busy,
        parked_ratio=parked,
        rollouts_queued=_count(metrics, "kubebeast_rollouts_queued"),
        rollout_queue_capacity=_count(metrics, "kubebeast_rollout_queue_capacity"),
        streams=streams,
        envs=_count(metrics, "kubebeast_envs"),
        slots=_count(metrics, "kubebeast_slots"),
        rows_per_batch=_rows_per_batch(looks),
        inference_queue_wait=_spread(looks, "kubebeast_inference_queue_wait_seconds"),
        inference_model=_spread(looks, "kubebeast_inference_seconds", phase="model"),
        policy_lag_updates=metrics.value("kubebeast_policy_lag_updates"),
        rho_clipped_ratio=metrics.value("kubebeast_rho_clipped_ratio"),
        policy_entropy_nats=metrics.value("kubebeast_policy_entropy_nats"),
        checkpoint_age_s=metrics.value("kubebeast_checkpoint_age_seconds"),
        steps_dropped=_dropped(metrics),
        troubles={name: count for name, metric in TROUBLES.items() if (count := _count(metrics, metric))},
        gpus=_gpus(metrics),
        env_servers=rows,
        notes=[*([f"not up to date: {looks.problem}"] if looks.problem else []), *now.notes],
    )


def as_json(view: View) -> dict[str, Any]:
    """Plain values for JSON: the view's fields, null where a value is unknown."""
    return asdict(view)


def _rows(before: Scrape | None, now: Scrape) -> list[Row]:
    elapsed_s = 0.0 if before is None else now.taken_at_s - before.taken_at_s
    return make_rows((before and before.streams) or (), now.streams or (), elapsed_s, _pods(now))


def _pods(now: Scrape) -> Mapping[str, PodState]:
    """Those that rows are made for: which of them have no stream is known only where streams are."""
    return now.pods if now.streams is not None else {}


def _parked_ratio(metrics: Metrics, rows: Sequence[Row]) -> float | None:
    """Over the window where streams tell, else of the moment."""
    known = [stream.parked_ratio for row in rows for stream in row.streams if stream.parked_ratio is not None]
    if known:
        return sum(known) / len(known)
    parked, streams = metrics.value("kubebeast_streams_parked"), metrics.value("kubebeast_streams")
    return parked / streams if parked is not None and streams else None


def _delta(looks: Looks, name: str) -> float | None:
    """A counter's growth over the window; None without two looks at the same life of it."""
    before = None if looks.before is None else looks.before.metrics.total(name)
    now = looks.now.metrics.total(name)
    return now - before if before is not None and now is not None and now >= before else None


def _rate(looks: Looks, name: str) -> float | None:
    delta = _delta(looks, name)
    if delta is None or looks.before is None or looks.now.taken_at_s <= looks.before.taken_at_s:
        return None
    return delta / (looks.now.taken_at_s - looks.before.taken_at_s)


def _rows_per_batch(looks: Looks) -> float | None:
    rows, batches = (_delta(looks, f"kubebeast_inference_{name}_total") for name in ("rows", "batches"))
    return rows / batches if rows is not None and batches else None


def _spread(looks: Looks, name: str, **labels: str) -> Spread:
    before = {} if looks.before is None else looks.before.metrics.buckets(name, **labels)
    p50_s, p99_s = quantiles(before, looks.now.metrics.buckets(name, **labels), (0.5, 0.99))
    return Spread(p50_s=p50_s, p99_s=p99_s)


def _count(metrics: Metrics, name: str) -> int | None:
    total = metrics.total(name)
    return None if total is None else round(total)


def _dropped(metrics: Metrics) -> int | None:
    outcomes = metrics.by_label("kubebeast_steps_total", "outcome")
    dropped = [count for outcome, count in outcomes.items() if outcome.startswith("dropped_")]
    return round(sum(dropped)) if dropped else None


def _gpus(metrics: Metrics) -> list[Gpu]:
    busy, used, total = (
        metrics.by_label(f"kubebeast_gpu_{name}", "device")
        for name in ("busy_ratio", "memory_used_bytes", "memory_total_bytes")
    )
    return [
        Gpu(
            device=device,
            busy_ratio=busy.get(device),
            memory_used_bytes=used.get(device),
            memory_total_bytes=total.get(device),
        )
        for device in sorted({*busy, *used, *total})
    ]
