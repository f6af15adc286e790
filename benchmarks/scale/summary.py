"""Summary of a learner's samples: throughput, age of the data, measured and calculated memory, cores by thread."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.scale.learner import Sample
from benchmarks.scale.settings import Settings

MIB = 1 << 20
FRAME_BYTES = 84 * 84
ROW_BYTES = FRAME_BYTES + 64
"""Memory of a waiting row of an environment: its frame and its other fields."""
MESSAGE_BYTES = 900
"""Memory of a decoded message besides its rows."""
STREAM_BYTES = 40 << 10
"""Memory of a connection with one stream in gRPC 1.51, and of its state in the pool."""
TRAINING_BYTES = 90 << 20
"""Memory that PyTorch allocates and keeps in the first update."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    streams: int
    envs: int
    steps_per_s: float
    slowest_second_ratio: float
    """Throughput of the slowest second over the mean."""
    lag_p50: float
    lag_p99: float
    lag_max: float
    lag_bound: float
    """Queue capacity and one unroll of each environment of a stream, in updates, plus the current update. Unrolls that
    are slow by chance are overtaken, and may be slightly older."""
    rss_mib: float
    calculated_mib: float
    rss_ratio: float
    action_p50_ms: float
    action_p99_ms: float
    stream_steps_min: int
    stream_steps_median: int
    stream_steps_max: int
    reply_busy_ratio: float
    """Share of the time in which answers were passed to streams."""
    learner_cores: float


def calculated_bytes(base_bytes: float, samples: Sequence[Sample], settings: Settings) -> float:
    """Returns the expected memory of the learner.

    It is the sum of the memory without streams, the training, a connection for each stream, T + 1 rows for each queued
    unroll, half as many for each running one, the first two rows of the next unroll for each environment of a parked
    stream, and four training batches (gathered, trained, kept for the next).
    """
    queued, running, parked = (
        float(np.mean([sample.stats[name] for sample in samples]))
        for name in ("rollouts_queued", "rollouts_running", "streams_parked")
    )
    row = ROW_BYTES + MESSAGE_BYTES / settings.envs_per_stream
    length = settings.unroll_length + 1
    rows = queued * length + running * (length / 2 + 1) + parked * settings.envs_per_stream * 2
    batch = settings.batch_size * length * FRAME_BYTES
    return base_bytes + TRAINING_BYTES + settings.streams * STREAM_BYTES + rows * row + 4 * batch


def summarize(
    base_bytes: float,
    samples: Sequence[Sample],
    before: Sequence[int],
    after: Sequence[int],
    settings: Settings,
    latencies: tuple[Any, Any],
) -> Summary:
    """Summarizes samples, one per second, and the env-steps of the streams `before` and `after` them."""
    first, last = samples[0], samples[-1]
    elapsed_s = last.time_s - first.time_s
    rates = throughput(samples)
    lags = np.concatenate([sample.lags for sample in samples[1:]])
    capacity = last.stats["rollout_queue_capacity"]
    calculated = calculated_bytes(base_bytes, samples, settings)
    rss = float(np.mean([sample.rss_bytes for sample in samples]))
    seconds, counts = latencies
    p50, p99 = np.interp([0.5, 0.99], counts.cumsum() / counts.sum(), seconds)
    played = np.sort(np.array(after) - np.array(before)) if len(before) == len(after) else np.sort(np.array(after))
    return Summary(
        streams=last.stats["streams"],
        envs=last.stats["envs"],
        steps_per_s=float(np.mean(rates)),
        slowest_second_ratio=float(np.min(rates) / np.mean(rates)),
        lag_p50=float(np.quantile(lags, 0.5)),
        lag_p99=float(np.quantile(lags, 0.99)),
        lag_max=float(lags.max()),
        lag_bound=math.ceil((capacity + settings.envs_per_stream) / settings.batch_size) + 1,
        rss_mib=rss / MIB,
        calculated_mib=calculated / MIB,
        rss_ratio=rss / calculated,
        action_p50_ms=float(p50) * 1e3,
        action_p99_ms=float(p99) * 1e3,
        stream_steps_min=int(played[0]),
        stream_steps_median=int(np.median(played)),
        stream_steps_max=int(played[-1]),
        reply_busy_ratio=(last.reply_s - first.reply_s) / elapsed_s,
        learner_cores=(last.cpu_s - first.cpu_s) / elapsed_s,
    )


def throughput(samples: Sequence[Sample]) -> list[float]:
    """Returns the env-steps per second between consecutive samples."""
    return [
        (now.stats["steps_sampled"] - before.stats["steps_sampled"]) / (now.time_s - before.time_s)
        for before, now in itertools.pairwise(samples)
    ]


def brief(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Returns the main values of every second."""
    return [
        {
            "second": sample.time_s - samples[0].time_s,
            "steps_per_s": rate,
            "lag_mean": float(np.mean(sample.lags)) if sample.lags else math.nan,
            "lag_max": max(sample.lags, default=math.nan),
            "rss_mib": sample.rss_bytes / MIB,
            **{name: sample.stats[name] for name in ("streams_parked", "rollouts_queued", "rollouts_running")},
        }
        for rate, sample in zip(throughput(samples), samples[1:], strict=True)
    ]


def cpu_of_threads(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns the cores used by the threads of each name, the busiest first, without those below 0.01."""
    first, last = samples[0], samples[-1]
    elapsed_s = last.time_s - first.time_s
    shares = {
        name: (seconds - first.cpu_s_of_threads.get(name, 0.0)) / elapsed_s
        for name, seconds in last.cpu_s_of_threads.items()
    }
    return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share >= 0.01}
