"""Summaries of samples in the scale benchmark."""

import numpy as np

from benchmarks.scale.learner import Sample
from benchmarks.scale.settings import Settings
from benchmarks.scale.summary import (
    MESSAGE_BYTES,
    ROW_BYTES,
    STREAM_BYTES,
    TRAINING_BYTES,
    calculated_bytes,
    cpu_of_threads,
    summarize,
)

SETTINGS = Settings(num_envs=40, num_streams=10, unroll_length=5, batch_size=8)


def sample(second: int, steps: int, lags: list[int], rss_bytes: int = 10**9) -> Sample:
    counts = {"rollouts_queued": 16, "rollouts_running": 24, "streams_parked": 4, "rollout_queue_capacity": 40}
    return Sample(
        time_s=100.0 + second,
        cpu_s=0.5 * second,
        rss_bytes=rss_bytes,
        updates=second,
        lags=lags,
        stats={"steps_sampled": steps, "streams": 10, "envs": 40, **counts},
        cpu_s_of_threads={"inference": 0.25 * second, "idle": 0.001 * second},
        reply_s=0.1 * second,
    )


SAMPLES = [sample(0, 0, [99]), sample(1, 100, [1, 2]), sample(2, 400, [3, 6])]


def test_memory_is_that_of_streams_unrolls_and_batches() -> None:
    rows = 16 * 6 + 24 * 4 + 4 * 4 * 2
    batches = 4 * 8 * 6 * 84 * 84
    streams = 10 * STREAM_BYTES + rows * (ROW_BYTES + MESSAGE_BYTES / 4)
    assert calculated_bytes(1000.0, SAMPLES, SETTINGS) == 1000 + TRAINING_BYTES + streams + batches


def test_the_summary_is_of_what_came_after_the_first_sample() -> None:
    latencies = np.array([0.001, 0.002, 0.1]), np.array([50, 49, 1])
    summary = summarize(1000.0, SAMPLES, [0, 20, 10], [100, 100, 100], SETTINGS, latencies)
    assert (summary.steps_per_s, summary.slowest_second_ratio) == (200.0, 0.5)
    assert (summary.lag_max, summary.lag_bound) == (6.0, 7)
    assert (summary.stream_steps_min, summary.stream_steps_median, summary.stream_steps_max) == (80, 90, 100)
    assert (summary.action_p50_ms, summary.action_p99_ms) == (1.0, 2.0)
    assert summary.learner_cores == 0.5


def test_threads_that_do_nothing_are_left_out() -> None:
    assert cpu_of_threads(SAMPLES) == {"inference": 0.25}
