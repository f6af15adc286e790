"""Use of the GPU by a learner, and the waiting times of its threads.

    python -m benchmarks.gpu --seconds 10 --processes 12 --envs 384
    python -m benchmarks.gpu --pong --processes 12 --envs 384
    python -m benchmarks.gpu --networks deep --compiles off --label deep-eager
    python -m benchmarks.gpu --tiny

Runs real learners one after the other, with different networks, precisions and compiler settings, under two loads:
recorded frames from clients that compute nothing, which isolate the learner, and real games of env-servers on this
machine. Times and shares are the learner's own metrics over the window; the driver reports the use of the GPU. Without
a GPU, everything runs on the CPU.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tyro

from benchmarks import frames, report
from benchmarks.gpu import pong
from benchmarks.gpu.loads import measure
from benchmarks.gpu.picture import draw_pong, draw_shares
from benchmarks.gpu.settings import Settings, variants


def main(arguments: Sequence[str] | None = None) -> None:
    settings = tyro.cli(Settings, description=__doc__, args=arguments).scaled()
    load = os.getloadavg()[0]
    path = train_pong(settings) if settings.pong else measure_all(settings, load)
    print("Results:", path)


def measure_all(settings: Settings, load_before: float) -> Path:
    rows, shares = [], []
    with tempfile.TemporaryDirectory() as name:
        recording = Path(name, "frames.npy")
        frames.record(recording, num_envs=settings.envs_per_client)
        for number, variant in enumerate(variants(settings)):
            folder = Path(name, str(number))
            folder.mkdir()
            print(f"measuring {variant}", flush=True)
            measured = measure(variant, settings, folder, recording)
            rows.append(measured[0])
            shares.append(measured[1])
    report.print_table(f"learners on {settings.device}, {settings.seconds:g} s each", rows)
    results = {"rows": rows, "shares": shares, "load_before": load_before}
    path = report.write_json(settings.name, settings, results)
    draw_shares(rows, shares, path.with_suffix(".png"), f"{settings.envs} environments, {settings.processes} processes")
    return path


def train_pong(settings: Settings) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        summary, points = pong.train(settings, Path(folder))
    report.print_table("Pong", [summary])
    path = report.write_json(settings.name, settings, {"summary": summary, "points": points})
    draw_pong(points, path.with_suffix(".png"), f"{settings.env}, {summary.steps_per_s:,.0f} steps/s")
    return path


if __name__ == "__main__":
    main()
