"""Evaluation of a learner's own metrics over a window: its speed, and the shares of working and waiting."""

import dataclasses

from benchmarks.gpu.busy import GpuUse
from benchmarks.gpu.settings import Settings, Variant
from benchmarks.gpu.transfers import transfers
from kubebeast_learner.profiling.phases import PHASES
from kubebeast_observe.scrape import Scrape, growth, quantiles

INFERENCE_PHASES = ("gather", "model", "reply")
STREAM_STATES = ("env", "action", "parked")
COUNTS = ("kubebeast_updates_total", "kubebeast_inference_batches_total", "kubebeast_stream_action_seconds_count")

FRAMES, FRAMES_PER_STEP = 200e6, 4
"""Length of a training in the literature of Atari games (arXiv:1802.01561), and the frames of one action."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The results of one learner; "no GPU" if there is none."""

    load: str
    network: str
    precision: str
    compile: str
    graphs: str
    inference_threads: int
    steps_per_s: float
    hours_per_200m_frames: float
    """Time of 200 million frames of a game at this rate, with four frames a step."""
    updates_per_s: float
    gpu_busy_percent: float | str
    gpu_memory_mib: float | str
    h2d_bytes_per_step: float
    """Bytes copied to a GPU per env-step, for inference and training."""
    rows_per_inference: float
    model_p50_ms: float | None
    """Time of an inference batch in the model, including copies to the device and back."""
    model_p99_ms: float | None
    action_p50_ms: float | None
    """Time from a stream's observations to its actions."""
    action_p99_ms: float | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """Shares of the time of the training thread, the inference threads and the streams; a remainder completes 1."""

    variant: str
    learner: dict[str, float]
    """Shares of waiting for rollouts and of the phases of updates."""
    inference: dict[str, float]
    """Shares of gather, model and reply; the remainder is waiting for rows."""
    streams: dict[str, float]
    """Shares of waiting for the environment (env), the model (action) and the learner (parked)."""


def is_full(before: Scrape, now: Scrape) -> bool:
    """Returns True if the window contains at least one update, one inference batch and one action."""
    return all(_growth(before, now, name) > 0 for name in COUNTS)


def row(variant: Variant, settings: Settings, before: Scrape, now: Scrape, gpu: GpuUse | None) -> Row:
    seconds = now.taken_at_s - before.taken_at_s
    sent = transfers(variant.network, settings.unroll_length, settings.batch_size)
    batches = _growth(before, now, "kubebeast_inference_batches_total")
    steps_per_s = _growth(before, now, "kubebeast_learner_step") / seconds
    model = _quantiles(before, now, "kubebeast_inference_seconds", phase="model")
    action = _quantiles(before, now, "kubebeast_stream_action_seconds")
    return Row(
        load=variant.load,
        network=variant.network,
        precision=variant.precision,
        compile=variant.compile,
        graphs=variant.graphs,
        inference_threads=variant.inference_threads,
        steps_per_s=steps_per_s,
        hours_per_200m_frames=FRAMES / FRAMES_PER_STEP / steps_per_s / 3600,
        updates_per_s=_growth(before, now, "kubebeast_updates_total") / seconds,
        gpu_busy_percent=gpu.busy_percent if gpu else "no GPU",
        gpu_memory_mib=gpu.memory_mib if gpu else "no GPU",
        h2d_bytes_per_step=sent.inference_bytes_per_step + sent.training_bytes_per_step,
        rows_per_inference=_growth(before, now, "kubebeast_inference_rows_total") / max(1.0, batches),
        model_p50_ms=model[0],
        model_p99_ms=model[1],
        action_p50_ms=action[0],
        action_p99_ms=action[1],
    )


def shares(variant: Variant, before: Scrape, now: Scrape) -> Shares:
    seconds = now.taken_at_s - before.taken_at_s
    learner = {"waiting": _growth(before, now, "kubebeast_learner_waiting_seconds_total") / seconds}
    for phase in PHASES:
        learner[phase] = _growth(before, now, "kubebeast_update_seconds_sum", phase=phase) / seconds
    threads = now.metrics.value("kubebeast_inference_threads") or 1.0
    inference = {
        phase: _growth(before, now, "kubebeast_inference_seconds_sum", phase=phase) / seconds / threads
        for phase in INFERENCE_PHASES
    }
    states = {state: _growth(before, now, f"kubebeast_stream_{state}_seconds_sum") for state in STREAM_STATES}
    total = sum(states.values()) or 1.0
    return Shares(
        variant=str(variant),
        learner=learner,
        inference=inference,
        streams={state: value / total for state, value in states.items()},
    )


def _growth(before: Scrape, now: Scrape, name: str, **labels: str) -> float:
    return growth(before, now, name, **labels) or 0.0


def _quantiles(before: Scrape, now: Scrape, name: str, **labels: str) -> list[float | None]:
    """Returns p50 and p99 in milliseconds."""
    counts_before, counts = (each.metrics.buckets(name, **labels) for each in (before, now))
    return [None if value is None else 1000 * value for value in quantiles(counts_before, counts, (0.5, 0.99))]
