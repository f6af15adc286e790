"""Population based training beside a random search with the same steps: python -m benchmarks.population

For each task and seed, a sweep of each kind trains as many runs for as many steps, and begins with the same parameters.
Then the best run of each plays with its last weights: of the last generation, or of the random trials. Sweeps and runs
that are there are not trained again.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import machine, report
from benchmarks.commands import kubebeast

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "results" / "population.png"
RANGES: dict[str, tuple[float, float]] = {"learning_rate": (1e-5, 1e-2), "entropy_cost": (1e-4, 1e-1)}
SCHEDULES = ("learning_rate_schedule", "entropy_schedule")
SEARCHES: tuple[Literal["random", "pbt"], ...] = ("random", "pbt")
COLORS = {"random": "#0072B2", "pbt": "#009E73"}
MEMBERS_APART = 1000
"""Distance of the seeds of two sweeps, so that no two runs have the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    tasks: tuple[str, ...] = ("Acrobot-v1", "Pendulum-v1")
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    schedules: bool = True
    """False keeps the learning rate and the entropy cost constant in a trial, and in an interval of a member."""
    members: int = 8
    """Members of the population, and trials of the random search."""
    total_steps: int = 50_000
    """Env-steps of each member, and of each trial."""
    interval: int = 10_000
    """Env-steps after which the members are compared."""
    resample: float = 0.0
    """Probability with which a parameter of a copied member is drawn anew."""
    episodes: int = 100
    """Episodes that the best run plays, with sampled actions."""
    folder: Path = Path("build/population")
    """Folder of the sweeps."""
    out: Path = OUT
    """Picture; its numbers are in a CSV file beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Parameters of a run until a step."""

    end: int
    score: float
    parameters: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The best run of a sweep."""

    task: str
    search: str
    seed: int
    mean_return: float
    """Mean return of episodes with its last weights."""
    score: float
    """Mean return of the last interval of the training."""
    cpu_s: float
    """CPU time of all runs of the sweep."""


Schedule = tuple[Interval, ...]
"""Intervals of a run, the first one first; one if its parameters stayed."""


def main(settings: Settings) -> None:
    found: dict[Found, Schedule] = {}
    for task in settings.tasks:
        for seed in settings.seeds:
            found |= dict(search(settings, task, kind, seed) for kind in SEARCHES)
    print(machine.describe())
    report.print_table("best run of each sweep", list(found))
    for task in settings.tasks:
        print(compared(task, list(found)))
    write(found, settings.out.with_suffix(".csv"))
    draw(found, settings)
    print("Results:", report.write_json("population", settings, {"found": list(found)}))


def search(settings: Settings, task: str, kind: str, seed: int) -> tuple[Found, Schedule]:
    """Runs a sweep, or what is left of it, and evaluates its best run."""
    name = f"{task.replace('/', '-')}-{kind}-{seed}"
    settings.folder.mkdir(parents=True, exist_ok=True)
    file, folder = settings.folder / f"{name}.yaml", settings.folder / name
    file.write_text(yaml.safe_dump(content_of(settings, task, kind, seed), sort_keys=False))
    kubebeast("sweep", str(file), f"--savedir={settings.folder}", "--progress=json")
    with open(folder / "trials.csv", newline="") as table:
        rows = {row["trial"]: row for row in csv.DictReader(table) if row["state"] == "done"}
    ends = {row["trial"]: end_of(settings, row) for row in rows.values()}
    last = [row for row in rows.values() if ends[row["trial"]] >= settings.total_steps]
    best = max(last, key=lambda row: float(row["score"]))
    found = Found(
        task=task,
        search=kind,
        seed=seed,
        mean_return=mean_return(settings, folder, best),
        score=float(best["score"]),
        cpu_s=round(sum(float(row["cpu_s"]) for row in rows.values())),
    )
    return found, tuple(interval_of(settings, row) for row in line_to(best, rows))


def content_of(settings: Settings, task: str, kind: str, seed: int) -> dict[str, Any]:
    """Returns the file of a sweep. Scores are means over as many steps in both kinds."""
    constant = {} if settings.schedules else dict.fromkeys(SCHEDULES, "constant")
    common = {"env": task, "total_steps": settings.total_steps, "learner_threads": 1, "compile": "off"}
    content: dict[str, Any] = {
        "settings": common | constant,
        "parameters": {name: {"log": list(limits)} for name, limits in RANGES.items()},
        "search": kind,
        "search_seed": seed,
        "seeds": [seed * MEMBERS_APART],
    }
    if kind == "pbt":
        population = {"members": settings.members, "interval": settings.interval, "resample": settings.resample}
        return {**content, "population": population, "window": 1.0}
    window = settings.interval / settings.total_steps
    return {**content, "num_trials": settings.members, "pruner": "none", "window": window}


def line_to(row: Mapping[str, str], rows: Mapping[str, Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Returns the trials whose steps a trial consists of, the first one first."""
    line = [row]
    while parent := line[0].get("parent"):
        line.insert(0, rows[str(int(parent.partition("-")[0]))])
    return line


def end_of(settings: Settings, row: Mapping[str, str]) -> int:
    """Returns the step at which a trial ends."""
    return settings.interval * (int(row["generation"]) + 1) if "generation" in row else settings.total_steps


def interval_of(settings: Settings, row: Mapping[str, str]) -> Interval:
    parameters = {name: float(row[name]) for name in RANGES}
    return Interval(end=end_of(settings, row), score=float(row["score"]), parameters=parameters)


def mean_return(settings: Settings, folder: Path, row: Mapping[str, str]) -> float:
    """Plays the run of a trial, and keeps the result in the folder of the run."""
    run = next(folder.glob(f"{int(row['trial']):03d}-seed*/"))
    kept = run / f"{settings.episodes}-episodes.json"
    if not kept.exists():
        flags = (f"--savedir={folder}", f"--xpid={run.name}", f"--episodes={settings.episodes}", "--mode=sample")
        kept.write_text(kubebeast("eval", *flags, "--json"))
    return float(np.mean([each["episode_return"] for each in json.loads(kept.read_text())["episodes"]]))


def compared(task: str, found: Sequence[Found]) -> str:
    """Returns a line with the means of both searches, their standard errors, and the number of seeds that one leads."""
    returns = {
        kind: np.asarray([each.mean_return for each in found if (each.task, each.search) == (task, kind)])
        for kind in SEARCHES
    }
    texts = [
        f"{kind} {each.mean():.1f} ± {each.std() / max(1, len(each) - 1) ** 0.5:.1f}" for kind, each in returns.items()
    ]
    wins = int((returns["pbt"] > returns["random"]).sum())
    return f"{task}: {', '.join(texts)}; pbt is ahead with {wins} of {len(returns['pbt'])} seeds"


def write(found: Mapping[Found, Schedule], path: Path) -> None:
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("task", "search", "seed", "mean_return", "end", "score", *RANGES))
        for each, schedule in found.items():
            place = (each.task, each.search, each.seed, round(each.mean_return, 2))
            for interval in schedule:
                numbers = (f"{interval.parameters[name]:.3g}" for name in RANGES)
                table.writerow((*place, interval.end, round(interval.score, 2), *numbers))


def draw(found: Mapping[Found, Schedule], settings: Settings) -> None:
    """Draws a row for each task: the returns of both searches by seed, and the schedules of the best runs."""
    figure = Figure(figsize=(12, 3.2 * len(settings.tasks)), layout="constrained")
    grid = figure.subplots(len(settings.tasks), 1 + len(RANGES), squeeze=False)
    for task, row in zip(settings.tasks, grid, strict=True):
        of_task = {each: schedule for each, schedule in found.items() if each.task == task}
        draw_returns(row[0], list(of_task), task)
        for name, axes in zip(RANGES, row[1:], strict=True):
            draw_schedules(axes, of_task, name, settings)
    grid[0, 0].legend(frameon=False)
    figure.savefig(settings.out, dpi=130)


def draw_returns(axes: Axes, found: Sequence[Found], task: str) -> None:
    for kind in SEARCHES:
        of_kind = [each for each in found if each.search == kind]
        seeds, returns = [each.seed for each in of_kind], [each.mean_return for each in of_kind]
        axes.plot(seeds, returns, "o", color=COLORS[kind], markersize=7, label=kind)
        axes.axhline(float(np.mean(returns)), color=COLORS[kind], linewidth=1, alpha=0.6)
    axes.set_title(task, loc="left", fontsize=11)
    axes.set_xlabel("seed; lines: means")
    axes.set_ylabel("return of the best run")
    dress(axes)


def draw_schedules(axes: Axes, found: Mapping[Found, Schedule], name: str, settings: Settings) -> None:
    for each, schedule in found.items():
        ends = [0, *(interval.end for interval in schedule)]
        values = [interval.parameters[name] for interval in schedule]
        axes.stairs(values, np.asarray(ends) / 1000, baseline=None, color=COLORS[each.search], alpha=0.7, linewidth=1.6)
    axes.set_yscale("log")
    axes.set_ylim(*RANGES[name])
    axes.set_xlim(0, settings.total_steps / 1000)
    axes.set_xlabel("thousand env-steps of the best run")
    axes.set_ylabel(name)
    dress(axes)


def dress(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
