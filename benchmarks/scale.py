"""One learner and thousands of streams: whether it flows, how old the data are, and what it takes.

    python -m benchmarks.scale --num-envs 4000

The learner is real but for its network, which is the smallest there is: pool, inference, V-trace, optimizer. Streams
are replayed by a few processes, one connection each; their environments take a while for each step, as emulators on
other machines do. Each second it reports how many env-steps arrived, how old the unrolls were that the learner took,
and how much memory the learner has, beside what it should have.
"""

import dataclasses
import math
import multiprocessing
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import tyro

from benchmarks import frames, report, scale_fleet, scale_learner
from benchmarks.cell import Cell
from benchmarks.scale_learner import LearnerSettings, Sample

mpl.use("Agg")
import itertools

from matplotlib import pyplot as plt

MIB = 1 << 20
FRAME_BYTES = 84 * 84
ROW_BYTES = FRAME_BYTES + 64
"""Of an environment's row while it waits: its frame, and what stands beside it."""
MESSAGE_BYTES = 900
"""Of a decoded message besides its rows."""
STREAM_BYTES = 40 << 10
"""Of a connection with one stream in gRPC 1.51, and of what the pool keeps of it."""
TRAINING_BYTES = 90 << 20
"""Of PyTorch once it has trained: what its first update loads and keeps."""
WELCOME_PATIENCE_S = 600.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    num_envs: int = 4000
    """Environments, of all streams together."""
    num_streams: int = 0
    """Streams, each with a connection of its own; 0: one an environment."""
    env_ms: float = 100.0
    """Mean time of an environment's step, in milliseconds; single steps take from half to one and a half of it."""
    seconds: float = 60.0
    """Length of the measurement, in seconds."""
    warmup_seconds: float = 20.0
    """Time that all streams play before it begins, in seconds."""
    unroll_length: int = 5
    """As of the recipe for Atari."""
    batch_size: int = 32
    max_learner_queue_size: int = 0
    """As of `kubebeast learner`."""
    min_inference_rows: int = 1
    """As of `kubebeast learner`."""
    num_processes: int = 2
    """Processes that replay the streams."""
    game: str = "pong"
    """The Atari game whose frames travel."""

    @property
    def streams(self) -> int:
        return self.num_streams or self.num_envs

    @property
    def envs_per_stream(self) -> int:
        return self.num_envs // self.streams


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    streams: int
    envs: int
    steps_per_s: float
    slowest_second_ratio: float
    """Over the mean."""
    lag_p50: float
    lag_p99: float
    lag_max: float
    lag_bound: float
    """Queue capacity and one unroll of each environment of a stream, in updates, and the update that is under way. What
    is slow by chance in its unroll is overtaken, and may be a little older."""
    rss_mib: float
    calculated_mib: float
    rss_ratio: float
    action_p50_ms: float
    action_p99_ms: float
    stream_steps_min: int
    stream_steps_median: int
    stream_steps_max: int
    reply_busy_ratio: float
    """Share of the time that answers were being handed to streams."""
    learner_cores: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    name: str
    value: float


def calculated_bytes(base_bytes: float, samples: Sequence[Sample], settings: Settings) -> float:
    """What the learner should have: what it had without streams, and what training takes; for each stream a connection,
    for each unroll that waits T + 1 rows, for each that is played half as many, for each environment of a parked stream
    the two rows that its next unroll begins with; four training batches (gathered, trained, kept for the next).
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
    """samples: one a second. before, after: env-steps of the streams at their beginning and end."""
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
    """Env-steps a second between each two samples."""
    return [
        (now.stats["steps_sampled"] - before.stats["steps_sampled"]) / (now.time_s - before.time_s)
        for before, now in itertools.pairwise(samples)
    ]


class Learner:
    """The process of scale_learner."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel

    def sample(self) -> Sample:
        self._channel.send(True)
        taken = self._channel.recv()
        assert isinstance(taken, Sample)
        return taken

    def stream_steps(self) -> list[int]:
        self._channel.send(False)
        return list(self._channel.recv())


def watch(learner: Learner, seconds: float, *, title: str) -> list[Sample]:
    """A sample a second, each told in a line."""
    samples = [learner.sample()]
    for second in range(1, round(seconds) + 1):
        time.sleep(max(0.0, samples[0].time_s + second - time.monotonic()))
        samples.append(learner.sample())
        stats = samples[-1].stats
        lags: list[float] = [*samples[-1].lags] or [math.nan]
        print(
            f"{title} {second:3d} s: {throughput(samples[-2:])[0]:7,.0f} steps/s, lag {np.mean(lags):5.1f}, "
            f"{stats['streams']:,} streams, {stats['streams_parked']:,} parked, {stats['rollouts_queued']:,} + "
            f"{stats['rollouts_running']:,} of {stats['rollout_queue_capacity']:,} unrolls, "
            f"{samples[-1].rss_bytes / MIB:,.0f} MiB",
            flush=True,
        )
    return samples


def gather_streams(fleet: scale_fleet.Fleet, settings: Settings) -> None:
    """Waits until all streams are welcome, and tells how many there are every second."""
    began_at = time.monotonic()
    welcome = before = 0
    while welcome < settings.streams:
        time.sleep(1.0)
        before, (welcome, _) = welcome, fleet.count()
        print(f"{welcome:,} of {settings.streams:,} streams, {welcome - before:,} a second", flush=True)
        if time.monotonic() - began_at > WELCOME_PATIENCE_S:
            raise RuntimeError("the streams do not come")


def draw(seconds: Sequence[Mapping[str, Any]], summary: Summary, path: Path) -> None:
    """Throughput, age of the data and memory, second by second."""
    figure, (speed, age, memory) = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
    times = [each["second"] for each in seconds]
    speed.plot(times, [each["steps_per_s"] for each in seconds])
    speed.axhline(summary.steps_per_s / 2, linestyle=":", color="grey", label="half of the mean")
    speed.set(ylabel="env-steps/s", ylim=(0, None), title=f"{summary.streams:,} streams, {summary.envs:,} environments")
    age.plot(times, [each["lag_mean"] for each in seconds], label="mean")
    age.plot(times, [each["lag_max"] for each in seconds], label="oldest")
    age.axhline(summary.lag_bound, linestyle=":", color="grey", label="queue capacity and one stream")
    age.set(ylabel="policy lag in updates", ylim=(0, None))
    memory.plot(times, [each["rss_mib"] for each in seconds], label="RSS")
    memory.axhline(summary.calculated_mib, linestyle=":", color="grey", label="calculated")
    memory.set(ylabel="MiB of the learner", xlabel="seconds", ylim=(0, None))
    for axes in (speed, age, memory):
        axes.legend(frameon=False, loc="lower right")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def measure(settings: Settings, folder: Path) -> tuple[Summary, list[Sample]]:
    cell = Cell(streams=settings.streams, num_envs=settings.envs_per_stream)
    program = scale_fleet.build()
    recording, messages_file = folder / "frames.npy", folder / "messages"
    frames.record(recording, settings.game)
    scale_fleet.write_messages(cell, recording, messages_file)
    here, there = multiprocessing.get_context("spawn").Pipe()
    learner_settings = LearnerSettings(
        max_streams=settings.streams,
        max_envs=settings.num_envs,
        max_envs_per_stream=settings.envs_per_stream,
        unroll_length=settings.unroll_length,
        batch_size=settings.batch_size,
        max_learner_queue_size=settings.max_learner_queue_size,
        min_inference_rows=settings.min_inference_rows,
    )
    process = multiprocessing.get_context("spawn").Process(target=scale_learner.serve, args=(learner_settings, there))
    process.start()
    there.close()
    learner = Learner(here)
    try:
        address = here.recv()
        base_bytes = learner.sample().rss_bytes
        with scale_fleet.running(
            program,
            address,
            messages_file,
            num_streams=settings.streams,
            num_processes=settings.num_processes,
            env_s=settings.env_ms / 1e3,
            unroll=settings.unroll_length,
        ) as fleet:
            gather_streams(fleet, settings)
            watch(learner, settings.warmup_seconds, title="warm-up")
            fleet.clear_latencies()
            before = learner.stream_steps()
            samples = watch(learner, settings.seconds, title="measured")
            summary = summarize(base_bytes, samples, before, learner.stream_steps(), settings, fleet.latencies())
    finally:
        here.close()
        process.join()
    return summary, samples


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        summary, samples = measure(settings, Path(folder))
    lines = [Line(name=name.replace("_", " "), value=value) for name, value in dataclasses.asdict(summary).items()]
    report.print_table(f"one learner, {settings.streams:,} streams", lines)
    threads = cpu_of_threads(samples)
    print("cores by thread:", ", ".join(f"{name} {share:.2f}" for name, share in threads.items()))
    seconds = brief(samples)
    name = f"scale_{settings.streams}"
    path = report.write_json(name, settings, {"summary": summary, "cores_of_threads": threads, "seconds": seconds})
    picture = path.with_suffix(".png")
    draw(seconds, summary, picture)
    print("Results:", path, picture)


def brief(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Of every second."""
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
    """Cores that the threads of each name used, the busiest first; less than a hundredth is left out."""
    first, last = samples[0], samples[-1]
    elapsed_s = last.time_s - first.time_s
    shares = {
        name: (seconds - first.cpu_s_of_threads.get(name, 0.0)) / elapsed_s
        for name, seconds in last.cpu_s_of_threads.items()
    }
    return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share >= 0.01}


if __name__ == "__main__":
    main()
