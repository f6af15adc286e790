"""Throughput of one learner with a fleet that grows, shrinks, vanishes and returns.

    python -m benchmarks.elastic_fleet --phase-s 60

One real `kubebeast learner` with a model of negligible cost; env-servers are added as new processes and removed by
SIGTERM, like `kubectl scale`. Environments sleep in each step (--env-ms), so that the rate of an env-server does not
depend on this machine's cores.
"""

import dataclasses
import tempfile
from pathlib import Path

import psutil
import tyro

from benchmarks import report
from benchmarks.fleet import LEARNER_FLAGS, Account, Fleet, settle
from benchmarks.timeline import Timeline
from harness.processes.learner_process import LearnerProcess


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    sizes: tuple[int, ...] = (2, 16, 2, 0, 8)
    """Env-servers in every phase."""
    phase_s: float = 60.0
    """Length of a phase after all its env-servers are connected, in seconds."""
    envs: int = 4
    """Environments of an env-server."""
    env_ms: float = 8.0
    """Sleep in a step of an environment, in milliseconds."""
    quick: bool = False
    """Small and short phases as a smoke test; the result has a separate name."""

    def scaled(self) -> "Settings":
        return dataclasses.replace(self, sizes=(1, 4, 1, 0, 2), phase_s=6.0) if self.quick else self


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    servers: int
    streams: int
    """Streams at the end of the phase."""
    steps_per_s: float
    steps_per_s_per_server: float | None
    against_first: float | None
    """Rate of an env-server over its rate in the first phase."""
    connected_after_s: float
    """Time from the change of size until the learner has as many streams."""
    slowest_contribution_s: float | None
    """Longest time in this phase from the start of an env-server's process to its first env-step."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    same_learner: bool
    """True if the learner's process is the same at the beginning and the end."""
    slowest_contribution_s: float
    exit_statuses: tuple[int, ...]
    """Distinct exit statuses of removed env-servers."""
    errors: int
    """Number of errors in the learner's log."""


class Elastic:
    """One run through the phases."""

    def __init__(self, settings: Settings, learner: LearnerProcess, fleet: Fleet) -> None:
        self.timeline = Timeline(learner)
        self.phases: list[Phase] = []
        self._settings = settings
        self._learner = learner
        self._fleet = fleet
        self._statuses: set[int] = set()
        self._process = psutil.Process(learner.pid)

    def run(self) -> Summary:
        for size in self._settings.sizes:
            self._statuses |= set(self._phase(size))
        self._statuses |= set(self._fleet.scale(0))
        self._learner.wait_until(lambda values: values["streams"] == 0)
        return Summary(
            # psutil compares the ids and creation times of processes.
            same_learner=self._process.is_running() and self._process == psutil.Process(self._learner.pid),
            slowest_contribution_s=max(self._fleet.contribution_s()),
            exit_statuses=tuple(sorted(self._statuses)),
            errors=len(self._learner.errors()),
        )

    def _phase(self, size: int) -> list[int]:
        """Runs a phase and returns the exit statuses of removed env-servers."""
        timeline, num_starts = self.timeline, len(self._fleet.contribution_s())
        timeline.note(f"{size} env-servers")
        changed_s = timeline.seconds
        statuses = self._fleet.scale(size)
        self._learner.wait_until(lambda values: values["streams"] == size)
        began_s = timeline.seconds
        timeline.watch(self._settings.phase_s)
        rate = timeline.throughput(began_s, timeline.seconds)
        per_server = rate / size if size else None
        first = self.phases[0].steps_per_s_per_server if self.phases else per_server
        phase = Phase(
            servers=size,
            streams=timeline.samples[-1].streams,
            steps_per_s=rate,
            steps_per_s_per_server=per_server,
            against_first=per_server / first if per_server and first else None,
            connected_after_s=began_s - changed_s,
            slowest_contribution_s=max(self._fleet.contribution_s()[num_starts:], default=None),
        )
        self.phases.append(phase)
        num_left = len(self._settings.sizes) - len(self.phases)
        print(f"{phase}\n{num_left} phases left, about {num_left * self._settings.phase_s:.0f} s", flush=True)
        return statuses


def run(settings: Settings, folder: Path) -> tuple[Summary, Account, list[Phase], Timeline]:
    with (
        LearnerProcess(folder, *LEARNER_FLAGS) as learner,
        Fleet(learner.address, folder, num_envs=settings.envs, env_kwargs={"env_ms": settings.env_ms}) as fleet,
    ):
        learner.wait_listening()
        elastic = Elastic(settings, learner, fleet)
        summary = elastic.run()
        account = settle(learner, folder)
        learner.terminate()
        return summary, account, elastic.phases, elastic.timeline


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__).scaled()
    with tempfile.TemporaryDirectory() as folder:
        summary, account, phases, timeline = run(settings, Path(folder))
    report.print_table("phases", phases)
    report.print_table("elastic fleet", [summary])
    report.print_table("env-steps", [account])
    results = {"summary": summary, "phases": phases, "account": account, "samples": timeline.samples}
    path = report.write_json("elastic_fleet-quick" if settings.quick else "elastic_fleet", settings, results)
    timeline.draw(path.with_suffix(".png"), f"env-servers: {', '.join(map(str, settings.sizes))}")
    print("Results:", path)


if __name__ == "__main__":
    main()
