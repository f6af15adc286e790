"""Returns that systems learn in a number of steps, minutes and CPU seconds.

    python -m benchmarks.learning
    python -m benchmarks.learning --tasks Acrobot Taxi --systems kubebeast sb3-ppo --seeds 1 2 3 --steps 300000
    python -m benchmarks.learning --tasks minatar --systems kubebeast sb3-ppo pqn
    python -m benchmarks.learning --tasks MinAtar-Breakout --alone
    python -m benchmarks.learning --tasks development --systems kubebeast-lag1 kubebeast --seeds 1
    python -m benchmarks.learning --tasks atari-5 --systems kubebeast-impala --alone --gpu

Every run is one training with the defaults of its system, on one core with one thread. A run whose file exists is not
repeated; one of KubeBeast that was cut off goes on. With --alone, one run at a time has all cores, which makes minutes
comparable.
"""

import dataclasses
import os
import queue
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tyro

from benchmarks import report
from benchmarks.learning import runs, systems, tasks
from benchmarks.learning.picture import X_LABELS, draw
from benchmarks.learning.runs import FailedError, Point, Trial
from benchmarks.learning.summary import interquartile_mean, interval, mean_of_part, summarise
from benchmarks.peers import venvs


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    tasks: tuple[str, ...] = ("defaults",)
    """Names of environments, or of suites: defaults, minatar, mujoco, development, atari-5 and atari-57."""
    systems: tuple[str, ...] = ("kubebeast", "sb3-ppo")
    """The first is compared with each of the others."""
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int | None = None
    """Env-steps of each run; None is the number of its task."""
    alone: bool = False
    """If set, one run at a time, with all cores; otherwise one for each core."""
    gpu: bool = False
    """If set, systems may use a GPU."""
    results: Path = Path("docs/results/learning")
    """Folder of the curves and pictures, which the repository keeps."""
    work: Path = Path("build/learning")
    """Folder of the venvs and of the files of the runs."""

    @property
    def trials(self) -> list[Trial]:
        return [
            Trial(task, systems.BY_NAME[system], seed, alone=self.alone)
            for task in tasks.named(self.tasks, self.steps)
            for seed in self.seeds
            for system in self.systems
        ]

    @property
    def pictures(self) -> Path:
        """Folder of the pictures."""
        steps = [] if self.steps is None else [f"{self.steps}-steps"]
        return self.results / "-".join([*self.tasks, *steps, *["alone"] * self.alone])


def main(arguments: Sequence[str] | None = None) -> None:
    settings = tyro.cli(Settings, description=__doc__, args=arguments)
    train(settings, [trial for trial in settings.trials if not trial.path(settings.results).exists()])
    show(settings)


def train(settings: Settings, trials: Sequence[Trial]) -> None:
    """Runs the trials, and prints each as it ends. A failure is printed, and the others go on."""
    pythons = {trial.system.name + trial.task.name: _python(trial, settings.work) for trial in trials}
    cores: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    for core in [None] if settings.alone else sorted(os.sched_getaffinity(0)):
        cores.put(core)
    began, num_done = time.monotonic(), 0

    def run(trial: Trial) -> None:
        nonlocal num_done
        core = cores.get()
        try:
            python = pythons[trial.system.name + trial.task.name]
            curve = trial.run(python, settings.work, core, gpu=settings.gpu)
            runs.write(curve, trial.path(settings.results))
            outcome = f"last fifth {mean_of_part(curve, 0.8, 1.0):.4g}, {curve[-1].minutes:.1f} min"
        except FailedError as error:
            outcome = f"failed:\n{error}"
        finally:
            cores.put(core)
        num_done += 1
        left_s = runs.estimate_s(began, num_done, len(trials) - num_done)
        print(f"{num_done} of {len(trials)}, {left_s / 60:.0f} min left: {trial}: {outcome}", flush=True)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, trials))


def show(settings: Settings) -> None:
    """Prints the tables, and draws the pictures, of the trials that have a result."""
    curves: dict[str, dict[str, list[list[Point]]]] = {}
    for trial in settings.trials:
        if trial.path(settings.results).exists():
            of_task = curves.setdefault(trial.task.name, {})
            of_task.setdefault(trial.system.name, []).append(runs.read(trial.path(settings.results)))
    report.print_table(
        "Mean returns",
        [summarise(task, system, seeds) for task, of_task in curves.items() for system, seeds in of_task.items()],
    )
    first, *others = settings.systems
    for other in others:
        _compare(curves, first, other)
    for x in X_LABELS:
        if curves:
            settings.pictures.mkdir(parents=True, exist_ok=True)
            draw(curves, x, settings.pictures / f"{x}.png")
    print("Results:", settings.results)


def _compare(curves: dict[str, dict[str, list[list[Point]]]], first: str, other: str) -> None:
    """Prints the interquartile mean of the first system's last fifth in units of the mean of the other's."""
    ratios: dict[str, list[float]] = {}
    for task, of_task in curves.items():
        if first in of_task and other in of_task:
            unit = summarise(task, other, of_task[other]).last_fifth
            if unit > 0:
                ratios[task] = [mean_of_part(curve, 0.8, 1.0) / unit for curve in of_task[first]]
    if ratios:
        middle = interquartile_mean([ratio for of_task in ratios.values() for ratio in of_task])
        low, high = interval(ratios)
        print(f"{first} / {other}, interquartile mean over {', '.join(ratios)}: {middle:.2f} ({low:.2f} to {high:.2f})")


def _python(trial: Trial, work: Path) -> Path:
    if not trial.system.requirements:
        return systems.THIS_PYTHON
    return venvs.python_with([*trial.system.requirements, *trial.task.requirements], work / "venvs")


if __name__ == "__main__":
    main()
