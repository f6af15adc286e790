"""Draws learning curves from the logs of finished runs: mean return against env-steps and against wall-clock time.

    python -m benchmarks.learning_curve RUN... --out docs/results/pong

RUN is the folder of a run (savedir/xpid). Writes OUT.png and, with at most --points rows a run, OUT.csv.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

COLUMNS = ("run", "step", "hours", "mean_episode_return")


@dataclass(frozen=True)
class Curve:
    """One run. Rows without a finished episode yet are left out."""

    name: str
    steps: Sequence[float]
    hours: Sequence[float]
    """Since the first row of the log, pauses between a stop and a resume included."""
    returns: Sequence[float]
    """Mean unclipped return of the newest episodes, as logged."""

    @classmethod
    def read(cls, run: Path) -> "Curve":
        """Reads run/logs.csv. OSError without one; ValueError names a run that has finished no episode."""
        with (run / "logs.csv").open(newline="") as file:
            header = next(csv.reader(file))
            header[0] = header[0].lstrip("# ")
            rows = list(csv.DictReader(file, fieldnames=header))
        finished = [row for row in rows if row["mean_episode_return"]]
        if not finished:
            raise ValueError(f"{run}: no episode has finished")
        started_at = float(rows[0]["_time"])
        return cls(
            name=run.name,
            steps=[float(row["step"]) for row in finished],
            hours=[(float(row["_time"]) - started_at) / 3600 for row in finished],
            returns=[float(row["mean_episode_return"]) for row in finished],
        )


def draw(curves: Sequence[Curve], path: Path, threshold: float | None) -> None:
    """Writes a PNG with both views side by side; `threshold` is a return to mark."""
    figure, (by_steps, by_time) = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for curve in curves:
        by_steps.plot([step / 1e6 for step in curve.steps], curve.returns, label=curve.name, linewidth=1.2)
        by_time.plot(curve.hours, curve.returns, label=curve.name, linewidth=1.2)
    _label(by_steps, "env-steps, millions", threshold)
    _label(by_time, "hours", threshold)
    by_steps.set_ylabel("mean return of the last 100 episodes")
    by_steps.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def write_csv(curves: Sequence[Curve], path: Path, points: int) -> None:
    """Writes every run thinned out to at most `points` rows, the last one included."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for curve in curves:
            last = len(curve.steps) - 1
            for index in sorted({round(last * point / max(1, points - 1)) for point in range(points)}):
                row = (curve.hours[index], curve.returns[index])
                writer.writerow((curve.name, int(curve.steps[index]), *(f"{value:.4f}" for value in row)))


def _label(axes: Axes, x: str, threshold: float | None) -> None:
    axes.set_xlabel(x)
    axes.grid(alpha=0.3)
    if threshold is not None:
        axes.axhline(threshold, color="grey", linestyle="--", linewidth=0.8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, help="path without ending")
    parser.add_argument("--threshold", type=float, help="a return to mark")
    parser.add_argument("--points", type=int, default=200)
    arguments = parser.parse_args()
    curves = [Curve.read(run) for run in arguments.runs]
    draw(curves, arguments.out.with_suffix(".png"), arguments.threshold)
    write_csv(curves, arguments.out.with_suffix(".csv"), arguments.points)


if __name__ == "__main__":
    main()
