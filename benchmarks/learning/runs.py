"""Runs of the comparison: each trains once and becomes a small CSV file, after which it is not run again."""

import csv
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.learning.systems import RUN, System
from benchmarks.learning.tasks import Task
from kubebeast_runs.log_table import LogTable, read_log

NUM_BINS = 50
COLUMNS = ("step", "minutes", "cpu_minutes", "episodes", "mean_return")


class FailedError(RuntimeError):
    """A system that did not train to the end; the message has its last lines."""


@dataclass(frozen=True, slots=True)
class Point:
    """The episodes that ended in one of NUM_BINS equal parts of a run."""

    step: int
    """End of the part."""
    minutes: float
    """Time of training until then."""
    cpu_minutes: float
    """CPU time until then, of all processes, in proportion to the time."""
    episodes: int
    mean_return: float
    """NaN if no episode ended."""


@dataclass(frozen=True, slots=True)
class Trial:
    task: Task
    system: System
    seed: int
    alone: bool = False
    """True if the run has all cores."""

    def __str__(self) -> str:
        return f"{self.task.name}, {self.system.name}, seed {self.seed}"

    def path(self, results: Path) -> Path:
        """Returns the file of the result."""
        return results / self._folder / f"{self.system.name}-seed{self.seed}.csv"

    @property
    def _folder(self) -> Path:
        """A run of another length is another run."""
        return Path(f"{self.task.steps}-steps" + "-alone" * self.alone, self.task.name)

    def run(self, python: Path, work: Path, core: int | None, *, gpu: bool = False) -> list[Point]:
        """Trains to the end, or goes on with a run that was cut off, and returns the curve. Raises FailedError.

        Args:
            python: Python of the system's venv.
            work: Folder for the files of all runs.
            core: Core of all its processes; None for all cores.
            gpu: If set, the system may use a GPU.
        """
        folder, steps = work / self._folder / f"{self.system.name}-seed{self.seed}", self.task.steps
        if not self.system.resumes:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        words = self.system.command(python, self.task, self.seed, steps, folder)
        variables = {"OMP_NUM_THREADS": "1"} | ({} if gpu else {"CUDA_VISIBLE_DEVICES": ""})
        _train(words if core is None else ["taskset", "--cpu-list", str(core), *words], variables, folder)
        return points(read_log(folder / RUN), steps, _cpu_s(folder))


def _train(words: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
    """Runs a command and adds its CPU time, with that of its children, to the file of `_cpu_s`."""
    with open(folder / "output.txt", "ab") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env={**os.environ, **variables})
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            _, status, usage = os.wait4(process.pid, 0)
            raise
        finally:
            process.returncode = 0  # reaped above
            spent_s = _cpu_s(folder) + usage.ru_utime + usage.ru_stime
            (folder / "cpu.json").write_text(json.dumps(spent_s))
    if status:
        lines = (folder / "output.txt").read_text(errors="replace").splitlines()
        raise FailedError("\n".join(lines[-5:]))


def _cpu_s(folder: Path) -> float:
    path = folder / "cpu.json"
    return float(json.loads(path.read_text())) if path.exists() else 0.0


def points(log: LogTable, steps: int, cpu_s: float) -> list[Point]:
    """Returns the curve of a run of `steps` env-steps that took `cpu_s`."""
    ends = np.ceil(np.asarray(log.steps) / steps * NUM_BINS).clip(1, NUM_BINS).astype(int)
    minutes = 60 * np.asarray(log.hours)
    counts, means = np.asarray(log.new_episodes.counts), np.asarray(log.new_episodes.means)
    per_minute = cpu_s / 60 / minutes[-1] if len(minutes) and minutes[-1] else 0.0
    found = []
    for end, rows in itertools.groupby(range(len(ends)), key=ends.__getitem__):
        members = list(rows)
        ended = [row for row in members if counts[row] > 0]
        mean = float(np.average(means[ended], weights=counts[ended])) if ended else float("nan")
        last = float(minutes[members[-1]])
        found.append(
            Point(int(end * steps // NUM_BINS), last, float(last * per_minute), int(counts[ended].sum()), mean)
        )
    return found


def write(curve: Sequence[Point], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        table.writerows(
            (p.step, f"{p.minutes:.3f}", f"{p.cpu_minutes:.3f}", p.episodes, f"{p.mean_return:.4g}") for p in curve
        )
    partial.rename(path)


def read(path: Path) -> list[Point]:
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        return [
            Point(
                int(row["step"]),
                float(row["minutes"]),
                float(row["cpu_minutes"]),
                int(row["episodes"]),
                float(row["mean_return"]),
            )
            for row in rows
        ]


def estimate_s(began: float, num_done: int, num_left: int) -> float:
    """Returns the time that the rest takes, at the pace since `began`, by time.monotonic."""
    return (time.monotonic() - began) / max(1, num_done) * num_left
