"""CPU time of a search for settings with pruning, over that of the same grid without.

    python -m benchmarks.sweep

Both sweeps have the 24 settings of one grid of CartPole, two seeds each, on all cores. One tries them in the order of a
tree-structured Parzen estimator and prunes by the median; the other trains all of them to the end. A sweep that was
ended goes on.
"""

import csv
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import tyro
import yaml

from benchmarks import report

PARAMETERS: dict[str, Any] = {
    "learning_rate": [0.00003, 0.0003, 0.001, 0.003],
    "unroll_length": [10, 40, 80],
    "entropy_cost": [0.0, 0.05],
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    total_steps: int = 70_000
    """Env-steps of each run."""
    seeds: tuple[int, ...] = (1, 2)
    threshold: float = 475.0
    """Mean return over the last fifth of the steps that solves the task."""
    parallel: int = 0
    """Runs at once; 0 is one for each core."""
    folder: Path = Path("build/sweep")
    """Folder of the sweeps."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    name: str
    trials: int
    pruned: int
    best_score: float
    cpu_s: float
    cpu_s_until_solved: float | None
    """CPU time of the trials until the first one that solves the task, in their order; None if none does."""


def run(name: str, settings: Settings, **entries: Any) -> Result:
    """Runs a sweep, and returns its result."""
    file = settings.folder / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    of_runs = {"env": "CartPole-v1", "total_steps": settings.total_steps, "learner_threads": 1, "compile": "off"}
    content = {"settings": of_runs, "parameters": PARAMETERS, "seeds": list(settings.seeds), **entries}
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    words = [sys.executable, "-m", "kubebeast_learner", "sweep", str(file), f"--savedir={settings.folder}"]
    subprocess.run([*words, f"--parallel={settings.parallel}"], check=True)
    with open(settings.folder / name / "trials.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    done = [row for row in rows if row["state"] == "done"]
    cpu_s = [float(row["cpu_s"]) for row in rows]
    solved = [index for index, row in enumerate(rows) if row in done and float(row["score"]) >= settings.threshold]
    return Result(
        name=name,
        trials=len(rows),
        pruned=sum(row["state"] == "pruned" for row in rows),
        best_score=max(float(row["score"]) for row in done),
        cpu_s=sum(cpu_s),
        cpu_s_until_solved=sum(cpu_s[: solved[0] + 1]) if solved else None,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    num_trials = 1
    for values in PARAMETERS.values():
        num_trials *= len(values)
    results = [
        run("pruned", settings, search="tpe", pruner="median", num_trials=num_trials),
        run("grid", settings, search="grid", pruner="none"),
    ]
    report.print_table("CPU time of a sweep", results)
    print(f"with pruning over without: {results[0].cpu_s / results[1].cpu_s:.2f}")
    print("Results:", report.write_json("sweep", settings, {"results": results}))


if __name__ == "__main__":
    main()
