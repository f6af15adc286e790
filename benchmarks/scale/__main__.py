"""One learner with thousands of streams: throughput, age of the data, and use of CPU and memory.

    python -m benchmarks.scale --num-envs 4000

The learner is real except for its tiny network: pool, inference, V-trace, optimizer. A few processes replay the
streams, one connection each; their environments wait in each step, like emulators on other machines. Every second it
reports the rate of env-steps, the age of the unrolls that the learner took, and the learner's memory. The result
compares the memory with a calculation.
"""

import dataclasses
import math
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import tyro

from benchmarks import frames, report
from benchmarks.cell import Cell
from benchmarks.scale.fleet import Fleet, build, running, write_messages
from benchmarks.scale.learner import LearnerSettings, Sample, serve
from benchmarks.scale.picture import draw
from benchmarks.scale.settings import Settings
from benchmarks.scale.summary import MIB, Summary, brief, cpu_of_threads, summarize, throughput

WELCOME_PATIENCE_S = 600.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    name: str
    value: float


class Learner:
    """Client of the process of benchmarks.scale.learner."""

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
    """Takes a sample per second and prints a line for each."""
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


def gather_streams(fleet: Fleet, settings: Settings) -> None:
    """Waits until all streams are welcome, and prints their number every second.

    Raises:
        RuntimeError: If they are not welcome after WELCOME_PATIENCE_S.
    """
    began_at = time.monotonic()
    welcome = before = 0
    while welcome < settings.streams:
        time.sleep(1.0)
        before, (welcome, _) = welcome, fleet.count()
        print(f"{welcome:,} of {settings.streams:,} streams, {welcome - before:,} a second", flush=True)
        if time.monotonic() - began_at > WELCOME_PATIENCE_S:
            raise RuntimeError("the streams do not come")


def measure(settings: Settings, folder: Path) -> tuple[Summary, list[Sample]]:
    cell = Cell(streams=settings.streams, num_envs=settings.envs_per_stream)
    program = build()
    recording, messages_file = folder / "frames.npy", folder / "messages"
    frames.record(recording, settings.game)
    write_messages(cell, recording, messages_file)
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
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(learner_settings, there))
    process.start()
    there.close()
    learner = Learner(here)
    try:
        address = here.recv()
        base_bytes = learner.sample().rss_bytes
        with running(
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


if __name__ == "__main__":
    main()
