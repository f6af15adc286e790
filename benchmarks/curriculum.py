"""Mazes of 2 to 49 rooms, examples/rooms_env.py, with levels by each curriculum: python -m benchmarks.curriculum

Trains a run of `kubebeast mono` for each curriculum and seed, plays its last checkpoint on all levels, and draws the
returns over all levels. Runs that are in the folder of the runs are not trained again.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

from benchmarks import machine
from benchmarks.commands import kubebeast
from benchmarks.report import print_table
from kubebeast_observe.arrays import as_array, column
from kubebeast_runs.log_table import read_log

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "results" / "mazes.png"
ENV = "rooms_env:Rooms-v0"
COLORS = {"progress": "#009E73", "success": "#E69F00", "uniform": "#0072B2"}
MEAN_RETURN = "curriculum/mean_return"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    runs: Path
    """Folder of the runs."""
    curricula: tuple[str, ...] = ("progress", "uniform")
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    rooms: int = 49
    """Number of rooms of the largest maze."""
    total_steps: int = 160_000
    episodes: int = 10
    """Episodes of each level that the last checkpoint plays, with sampled actions."""
    out: Path = OUT
    """Picture; the curves are in a CSV file beside it."""

    @property
    def levels(self) -> str:
        """The setting levels."""
        return json.dumps({"rooms": list(range(2, self.rooms + 1))})


@dataclass(frozen=True, slots=True)
class Row:
    """A finished run."""

    curriculum: str
    seed: int
    mean_return: float
    """Mean over all levels; that of an episode is 1 if it reaches the goal, else 0."""
    solved_levels: int
    """Levels that are solved in nine of ten episodes or more."""
    minutes: float


def main(settings: Settings) -> None:
    rows = []
    for curriculum in settings.curricula:
        for seed in settings.seeds:
            name = name_of(curriculum, seed)
            if not (settings.runs / name / "weights.safetensors").exists():
                run_command("mono", settings, name, *training_flags(settings, curriculum, seed))
            rows.append(evaluated(settings, curriculum, seed))
    print(machine.describe())
    print_table("mazes", rows)
    curves = {
        curriculum: [curve(settings.runs / name_of(curriculum, seed)) for seed in settings.seeds]
        for curriculum in settings.curricula
    }
    write(curves, settings)
    draw(curves, settings.out)


def training_flags(settings: Settings, curriculum: str, seed: int) -> Sequence[str]:
    return (
        *(f"--env={ENV}", f"--seed={seed}", f"--total-steps={settings.total_steps}", "--progress=none"),
        *(f"--curriculum={curriculum}", f"--levels={settings.levels}"),
        *("--num-actors=16", "--num-actor-processes=1", "--log-interval-s=1"),
    )


def run_command(command: str, settings: Settings, name: str, *flags: str) -> str:
    """Runs a command of the learner on a run; returns its output. Raises CalledProcessError if it fails."""
    return kubebeast(command, f"--savedir={settings.runs}", f"--xpid={name}", *flags, folder=ROOT / "examples")


def evaluated(settings: Settings, curriculum: str, seed: int) -> Row:
    """Plays all levels with the last checkpoint."""
    name = name_of(curriculum, seed)
    flags = (f"--env={ENV}", f"--levels={settings.levels}", "--mode=sample", "--json")
    result = json.loads(
        run_command("eval", settings, name, f"--episodes={(settings.rooms - 1) * settings.episodes}", *flags)
    )
    returns: dict[str, list[float]] = {}
    for episode in result["episodes"]:
        returns.setdefault(episode["level"], []).append(episode["episode_return"])
    means = [float(np.mean(of_level)) for of_level in returns.values()]
    minutes = read_log(settings.runs / name).newest("elapsed_s") or 0.0
    return Row(curriculum, seed, round(float(np.mean(means)), 3), sum(mean >= 0.9 for mean in means), minutes / 60)


def curve(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns env-steps and the mean over the levels of their recent returns."""
    log = read_log(folder)
    return np.asarray(as_array(log.steps)), np.asarray(column(log, MEAN_RETURN))


def write(curves: dict[str, list[tuple[np.ndarray, np.ndarray]]], settings: Settings) -> None:
    with open(settings.out.with_suffix(".csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("curriculum", "seed", "step", "mean_return"))
        for curriculum, of_seeds in curves.items():
            for seed, (steps, returns) in zip(settings.seeds, of_seeds, strict=True):
                points = zip(steps.tolist(), returns.tolist(), strict=True)
                table.writerows((curriculum, seed, int(step), round(each, 4)) for step, each in points)


def draw(curves: dict[str, list[tuple[np.ndarray, np.ndarray]]], path: Path) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for curriculum, of_seeds in curves.items():
        for index, (steps, returns) in enumerate(of_seeds):
            axes.plot(steps / 1000, returns, color=COLORS.get(curriculum), label="" if index else curriculum)
    axes.set_xlabel("thousand env-steps")
    axes.set_ylabel("mean return over all levels")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def name_of(curriculum: str, seed: int) -> str:
    return f"mazes-{curriculum}-seed{seed}"


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
