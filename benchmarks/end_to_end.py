"""Measurement of a real training run from outside, over a window after the warm-up."""

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import psutil


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Totals of a run between two of its progress lines."""

    seconds: float
    steps: int
    """Env-steps trained."""
    learner_cpu_s: float
    actors_cpu_s: float
    """CPU seconds of all descendants of the learner's process."""
    machine_cpu_s: float
    """CPU seconds of all processes of the machine, including these."""
    rows_per_inference: float
    """Mean rows of an inference batch."""

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.seconds

    @property
    def cores_used(self) -> float:
        return (self.learner_cpu_s + self.actors_cpu_s) / self.seconds

    @property
    def cores_used_by_others(self) -> float:
        """Cores used by other processes; if it is far from 0, the results are unreliable."""
        return self.machine_cpu_s / self.seconds - self.cores_used

    @property
    def cpu_us_per_step(self) -> float:
        return (self.learner_cpu_s + self.actors_cpu_s) / self.steps * 1e6


@dataclasses.dataclass(frozen=True, slots=True)
class _Moment:
    progress: dict[str, Any]
    learner_cpu_s: float
    actors_cpu_s: float
    machine_cpu_s: float


def measure(name: str, flags: list[str], *, warmup_seconds: float, seconds: float) -> Window:
    """Runs `kubebeast <name>`, train or mono, with `flags` and measures it after its first updates and warmup_seconds.

    Raises:
        RuntimeError: If the run ends early, stands still or loses one of its processes in the window; its messages are
            printed before.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kubebeast_learner", name, "--progress", "json", "--log-interval-s", "0.5"]
        command += ["--savedir", folder, "--disable-checkpoint", "--total-steps", "1000000000", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            moments = _moments(process)
            # The first update includes compilation.
            first = next(moment for moment in moments if moment.progress["num_updates"] >= 3)
            before = _later(moments, first, warmup_seconds)
            after = _later(moments, before, seconds)
        except StopIteration:
            raise RuntimeError(f"`kubebeast {name}` ended early with status {process.wait()}") from None
        finally:
            process.terminate()
            process.communicate()
    return _window(before, after)


def _moments(process: "subprocess.Popen[str]") -> Iterator[_Moment]:
    """Yields a moment for every progress line, with CPU times at its arrival."""
    assert process.stdout is not None
    learner = psutil.Process(process.pid)
    for line in process.stdout:
        if line.startswith("{"):
            actors = [busy_s(child.cpu_times()) for child in learner.children(recursive=True)]
            own, machine = busy_s(learner.cpu_times()), busy_s(psutil.cpu_times())
            yield _Moment(json.loads(line), own, sum(actors), machine)


def busy_s(times: Any) -> float:
    """Returns the user and system seconds of a record of psutil, including those of niced processes of the machine."""
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _later(moments: Iterator[_Moment], since: _Moment, seconds: float) -> _Moment:
    return next(m for m in moments if m.progress["elapsed_s"] - since.progress["elapsed_s"] >= seconds)


def _window(before: _Moment, after: _Moment) -> Window:
    if after.progress["actor_restarts"] > before.progress["actor_restarts"]:
        raise RuntimeError("a process was restarted during the measurement")
    steps = after.progress["step"] - before.progress["step"]
    if steps <= 0:
        raise RuntimeError(f"the run stands still: {before.progress}, then {after.progress}")
    return Window(
        seconds=after.progress["elapsed_s"] - before.progress["elapsed_s"],
        steps=steps,
        learner_cpu_s=after.learner_cpu_s - before.learner_cpu_s,
        actors_cpu_s=after.actors_cpu_s - before.actors_cpu_s,
        machine_cpu_s=after.machine_cpu_s - before.machine_cpu_s,
        rows_per_inference=after.progress["rows_per_inference"],
    )
