"""Training of Pong for some minutes, with its learning curve on this machine."""

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu.busy import GpuUse, GpuWatch
from benchmarks.gpu.loads import local_training, wait_for_updates, wait_until
from benchmarks.gpu.settings import Settings
from harness.processes.learner_process import LearnerProcess

SAMPLE_S = 5.0

_ENVS_PER_SERVER = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    seconds: float
    """Time since the training began."""
    step: int
    mean_return: float | None
    """Mean return of the newest 100 games; None before the first has ended."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Pong:
    seconds: float
    steps: int
    steps_per_s: float
    mean_return: float | None
    minutes_to_return: float | None
    """Minutes from the beginning of the training to `pong_return`; None if it was not reached."""
    gpu_busy_percent: float | str


def train(settings: Settings, folder: Path, keep: Callable[[Pong, list[Point]], object]) -> tuple[Pong, list[Point]]:
    """Trains to `pong_return`, for `pong_seconds` at most; raises RuntimeError with the end of the learner's log if it
    does not train.

    Args:
        keep: Called with the result and the curve until now, every SAMPLE_S and at the end.
    """
    envs = _ENVS_PER_SERVER * settings.processes
    flags = ["--recipe=auto", f"--env={settings.env}", f"--num-servers={settings.processes}", f"--num-actors={envs}"]
    # Batches of one unroll of each environment: data of more would be several updates old.
    flags += [f"--batch-size={envs}", f"--device={settings.device}", f"--compile={settings.compiles[0]}"]
    with local_training(settings, folder, *flags) as learner:
        wait_for_updates(learner)
        deadline = time.monotonic() + settings.pong_seconds
        with GpuWatch() as watch:
            while True:
                points = thinned([point_of(line.values) for line in learner.history])
                found = summary(points, watch.use, settings.pong_return)
                keep(found, points)
                if has_learned(points[-1], settings.pong_return) or time.monotonic() >= deadline:
                    return found, points
                next_sample = min(deadline, time.monotonic() + SAMPLE_S)
                wait_until(learner, functools.partial(_has_news, learner, settings, next_sample))


def _has_news(learner: LearnerProcess, settings: Settings, end: float) -> bool:
    return time.monotonic() >= end or has_learned(point_of(learner.newest), settings.pong_return)


def has_learned(point: Point, wanted: float) -> bool:
    return point.mean_return is not None and point.mean_return >= wanted


def point_of(values: dict[str, float | None]) -> Point:
    """Returns the point of a progress line."""
    return Point(values["elapsed_s"] or 0.0, int(values["step"] or 0), values["mean_episode_return"])


def thinned(points: list[Point]) -> list[Point]:
    """Returns one point every SAMPLE_S, and the last one."""
    kept: list[Point] = []
    for point in points:
        if not kept or point.seconds >= kept[-1].seconds + SAMPLE_S:
            kept.append(point)
    return kept if kept[-1] is points[-1] else [*kept, points[-1]]


def summary(points: list[Point], gpu: GpuUse | None, wanted: float) -> Pong:
    last = points[-1]
    reached = next((point.seconds / 60 for point in points if has_learned(point, wanted)), None)
    return Pong(
        seconds=last.seconds,
        steps=last.step,
        steps_per_s=last.step / last.seconds if last.seconds else 0.0,
        mean_return=last.mean_return,
        minutes_to_return=reached,
        gpu_busy_percent=gpu.busy_percent if gpu else "no GPU",
    )
