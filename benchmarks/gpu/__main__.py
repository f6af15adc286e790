"""Use of the GPU by a learner, and the waiting times of its threads.

    python -m benchmarks.gpu --seconds 10 --processes 12 --envs 384
    python -m benchmarks.gpu --pong --processes 12 --envs 384
    python -m benchmarks.gpu --loads null --networks deep --precisions bf16 --compiles on off --label deep
    python -m benchmarks.gpu --tiny

Runs real learners one after the other, with different networks, precisions, compiler settings and CUDA graphs, under
two loads: recorded frames from clients that compute nothing, which isolate the learner, and real games of env-servers
on this machine. Times and shares are the learner's own metrics over the window; the driver reports the use of the GPU.
Without a GPU, everything runs on the CPU. Each learner's result is written as it comes; the same command goes on with
those that are missing.
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
from benchmarks.gpu.window import Row, Shares


def main(arguments: Sequence[str] | None = None) -> None:
    settings = tyro.cli(Settings, description=__doc__, args=arguments).scaled()
    load = os.getloadavg()[0]
    path = train_pong(settings) if settings.pong else measure_all(settings, load)
    print("Results:", path)


def measure_all(settings: Settings, load_before: float) -> Path:
    """Measures all learners and writes each result as it comes; goes on after the ones that were written before.

    Raises SystemExit after all others for learners that did not train.
    """
    failed = []
    written = report.read_json(settings.name, settings) or {"rows": [], "shares": [], "load_before": load_before}
    rows, shares = [Row(**each) for each in written["rows"]], [Shares(**each) for each in written["shares"]]
    with tempfile.TemporaryDirectory() as name:
        recording = Path(name, "frames.npy")
        frames.record(recording, num_envs=settings.envs_per_client)
        for number, variant in enumerate(variants(settings)):
            if str(variant) in [each.variant for each in shares]:
                continue
            folder = Path(name, str(number))
            folder.mkdir()
            print(f"measuring {variant}", flush=True)
            try:
                row, share = measure(variant, settings, folder, recording)
            except RuntimeError as error:
                failed.append(str(variant))
                print(f"{variant}: {error}", flush=True)
                continue
            rows.append(row)
            shares.append(share)
            report.write_json(settings.name, settings, written | {"rows": rows, "shares": shares})
    report.print_table(f"learners on {settings.device}, {settings.seconds:g} s each", rows)
    path = report.path_of(settings.name)
    draw_shares(rows, shares, path.with_suffix(".png"), f"{settings.envs} environments, {settings.processes} processes")
    if failed:
        raise SystemExit(f"not measured: {'; '.join(failed)}")
    return path


def train_pong(settings: Settings) -> Path:
    """Trains Pong, and writes the curve as it comes."""

    def keep(summary: pong.Pong, points: list[pong.Point]) -> Path:
        return report.write_json(settings.name, settings, {"summary": summary, "points": points})

    with tempfile.TemporaryDirectory() as folder:
        summary, points = pong.train(settings, Path(folder), keep)
    report.print_table("Pong", [summary])
    path = keep(summary, points)
    draw_pong(points, path.with_suffix(".png"), f"{settings.env}, {summary.steps_per_s:,.0f} steps/s")
    return path


if __name__ == "__main__":
    main()
