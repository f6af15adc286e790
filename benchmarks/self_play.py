"""Tic-tac-toe by self-play: python -m benchmarks.self_play

Trains a run of `kubebeast train` against a league for each seed, plays its last checkpoint against perfect and random
play, and draws the Elo rating. Runs that are in the folder of the runs are not trained again.
"""

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.commands import kubebeast
from benchmarks.report import print_table
from kubebeast_observe.arrays import as_array, column
from kubebeast_runs.log_table import read_log

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "results" / "tictactoe.png"
PERFECT = "perfect_tictactoe:Perfect"
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Env-steps and the Elo rating of the policy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    runs: Path
    """Folder of the runs."""
    opponents: str = "prioritized"
    seeds: tuple[int, ...] = (1,)
    total_steps: int = 600_000
    league_interval: int = 25_000
    num_actors: int = 128
    entropy_cost: float = 0.1
    """Large enough that moves of equal value stay in play: a policy without doubts meets few of the openings."""
    episodes: int = 4000
    """Games of the last checkpoint against each opponent, with the most likely actions."""
    out: Path = OUT
    """Picture; the curves are in a CSV file beside it."""


@dataclass(frozen=True, slots=True)
class Row:
    """Games of a finished run against an opponent."""

    seed: int
    opponent: str
    won: float
    drawn: float
    lost: float
    elo: float
    """Rating at the end of the training."""
    minutes: float


def main(settings: Settings) -> None:
    for seed in settings.seeds:
        if not (settings.runs / name_of(seed) / "weights.safetensors").exists():
            train(settings, seed)
    print(machine.describe())
    opponents = (PERFECT, "random")
    print_table("tic-tac-toe", [played(settings, seed, name) for seed in settings.seeds for name in opponents])
    curves = {seed: curve(settings.runs / name_of(seed)) for seed in settings.seeds}
    write(curves, settings.out)
    draw(curves, settings.out)


def train(settings: Settings, seed: int) -> None:
    run_command(
        "train",
        settings,
        seed,
        "--env=pettingzoo/classic/tictactoe_v3",
        f"--opponents={settings.opponents}",
        f"--league-interval={settings.league_interval}",
        f"--num-actors={settings.num_actors}",
        f"--entropy-cost={settings.entropy_cost}",
        f"--total-steps={settings.total_steps}",
        f"--seed={seed}",
        *("--num-servers=2", "--batch-size=16", "--progress=none", "--log-interval-s=1"),
    )


def run_command(command: str, settings: Settings, seed: int, *flags: str) -> str:
    """Runs a command of the learner on a run; returns its output. Raises CalledProcessError if it fails."""
    return kubebeast(command, f"--savedir={settings.runs}", f"--xpid={name_of(seed)}", *flags, folder=ROOT / "examples")


def played(settings: Settings, seed: int, opponent: str) -> Row:
    flags = (f"--against={opponent}", f"--episodes={settings.episodes}", "--json")
    result = json.loads(run_command("eval", settings, seed, *flags))
    returns = np.array([episode["episode_return"] for episode in result["episodes"]])
    log = read_log(settings.runs / name_of(seed))
    return Row(
        seed=seed,
        opponent=opponent,
        won=round(float((returns > 0).mean()), 3),
        drawn=round(float((returns == 0).mean()), 3),
        lost=round(float((returns < 0).mean()), 3),
        elo=round(log.newest("league/elo") or 0.0),
        minutes=(log.newest("elapsed_s") or 0.0) / 60,
    )


def curve(folder: Path) -> Curve:
    log = read_log(folder)
    return np.asarray(as_array(log.steps)), np.asarray(column(log, "league/elo"))


def write(curves: dict[int, Curve], out: Path) -> None:
    with open(out.with_suffix(".csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("seed", "step", "elo"))
        for seed, (steps, ratings) in curves.items():
            points = zip(steps.tolist(), ratings.tolist(), strict=True)
            table.writerows((seed, int(step), round(rating, 1)) for step, rating in points)


def draw(curves: dict[int, Curve], path: Path) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for seed, (steps, ratings) in curves.items():
        axes.plot(steps / 1000, ratings, label=f"seed {seed}")
    axes.set_xlabel("thousand env-steps")
    axes.set_ylabel("Elo rating of the policy")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def name_of(seed: int) -> str:
    return f"tictactoe-seed{seed}"


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
