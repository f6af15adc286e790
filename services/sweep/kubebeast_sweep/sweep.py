"""The loop of a sweep: as many runs at once as there are places, until all trials are done."""

import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import yaml

from kubebeast_common.atomic_file import write_atomically
from kubebeast_common.process.cpu_time import read_cpu_time
from kubebeast_common.settings import ConfigError
from kubebeast_common.volume import is_full
from kubebeast_sweep.active_trial import ActiveTrial
from kubebeast_sweep.grouping import grouped
from kubebeast_sweep.plan import Plan
from kubebeast_sweep.population import GENERATION, PARENT
from kubebeast_sweep.training_run import STOPPED, Launch, TrainingRun, run_name
from kubebeast_sweep.trials.study import Study

POLL_S = 0.5
MAX_FAILURES = 3
"""Trials that fail one after the other before the sweep ends."""
_LOG_INTERVAL_S = 1.0
"""Interval of the rows by which runs are compared, unless the file has another one."""

logger = logging.getLogger(__name__)


class SweepError(RuntimeError):
    """The sweep cannot go on; the message gives the reason."""


class Sweep:
    """The trials of a sweep under way. Not thread-safe."""

    def __init__(
        self,
        plan: Plan,
        study: Study,
        folder: Path,
        *,
        launch: Launch,
        places: Sequence[Collection[int]],
        flags: Sequence[str] = (),
        leaves_runs: bool = False,
    ) -> None:
        """Prepares the trials that were under way.

        Args:
            places: Cores of each run at a time.
            flags: Flags of each run, besides those of its settings.
            leaves_runs: Let the runs go on if the sweep is stopped.
        """
        self._launch, self._flags, self._leaves_runs = launch, flags, leaves_runs
        self._plan, self._study, self._folder = plan, study, folder
        self._free = list(places)
        self._num_failures = 0
        self._has_warned = False
        self._is_full = False
        self.active = [ActiveTrial(trial, plan, study, self._start) for trial in study.begun()]
        if self.active:
            logger.info("going on with the trials %s", ", ".join(str(each.number) for each in self.active))

    def run(self, stop: threading.Event, show: Callable[[], None]) -> None:
        """Trains until all trials are done, one reaches the goal, or `stop`; then ends all runs, unless it leaves them.

        Calls `show` about twice a second. Raises SweepError if trial after trial fails, ConfigError if the first one is
        refused for its settings, and OSError, but for a full volume, for which it waits.
        """
        try:
            while not stop.is_set() and not self._is_goal_reached():
                self._fill()
                if not self.active:
                    break
                show()
                stop.wait(POLL_S)
                self._look()
        finally:
            if not (self._leaves_runs and stop.is_set()):
                self._stop_runs()
        show()

    def _stop_runs(self) -> None:
        for trial in self.active:
            try:
                trial.stop()
            except OSError as error:
                logger.warning("trial %d has ended, without its CPU time: %s", trial.number, error)

    def _fill(self) -> None:
        """Starts runs as long as there are free places and runs to start, those of older trials first."""
        while self._free:
            trial = next((each for each in self.active if each.is_waiting), None) or self._begin()
            if trial is None:
                return
            try:
                trial.start_next(self._free[-1])
            except OSError as error:
                if not is_full(error):
                    raise
                self._note_full(error)
                return
            self._free.pop()
            self._is_full = False

    def _note_full(self, error: OSError) -> None:
        if not self._is_full:
            logger.warning("no run can begin, as %s cannot be written: %s", self._folder, error.strerror)
        self._is_full = True

    def _begin(self) -> ActiveTrial | None:
        asked = self._study.ask()
        if asked is None:
            return None
        trial = ActiveTrial(asked, self._plan, self._study, self._start)
        self.active.append(trial)
        return trial

    def _look(self) -> None:
        for trial in list(self.active):
            before = trial.runs
            trial.look()
            self._free += [run.cores for run in before if run not in trial.runs]
            if trial.is_over:
                self.active.remove(trial)
                self._warn(trial)
                self._note_failure(trial)

    def _warn(self, trial: ActiveTrial) -> None:
        if trial.warning and not self._has_warned:
            self._has_warned = True
            logger.warning("%s", trial.warning)

    def _note_failure(self, trial: ActiveTrial) -> None:
        if not trial.reason:
            self._num_failures = 0
            return
        logger.warning("trial %d failed: %s", trial.number, trial.reason)
        self._num_failures += 1
        if trial.num_failed_at_start and self._study.best() is None:
            raise ConfigError(f"trial {trial.number}: {trial.reason}")
        if self._num_failures >= MAX_FAILURES:
            raise SweepError(f"{MAX_FAILURES} trials in a row have failed, the last one: {trial.reason}")

    def _is_goal_reached(self) -> bool:
        best = self._study.best()
        return best is not None and best.value is not None and self._plan.reaches_goal(best.value)

    def _start(self, trial: ActiveTrial, seed: int, cores: Collection[int]) -> TrainingRun:
        settings, name = self._folder / f"{trial.number:03d}.yaml", run_name(trial.number, seed)
        content = {"log_interval_s": _LOG_INTERVAL_S, **self._plan.settings, **trial.parameters}
        if self._plan.population:
            end = self._plan.population.interval * (trial.attributes[GENERATION] + 1)
            content["total_steps"] = min(end, self._plan.total_steps)
            content.setdefault("schedule_steps", self._plan.total_steps)
        if parent := trial.attributes.get(PARENT):
            content["fork_from"] = str(self._folder / parent)
        write_atomically(settings, yaml.safe_dump(grouped(content, self._folder.name), sort_keys=False).encode())
        words = [self._plan.command, f"--recipe={self._plan.recipe}", f"--config={settings}"]
        words += [f"--savedir={self._folder}", f"--xpid={name}", f"--seed={seed}", "--progress=none", "--wait-for-run"]
        return self._launch([*words, f"--stop-status={STOPPED}", *self._flags], self._folder / name, cores)


def os_cores() -> list[int]:
    """Returns the cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def num_places() -> int:
    """Returns the number of runs that have a core each: the cores of this process, within its container's limit."""
    cpu_time = read_cpu_time()
    cores = len(os_cores())
    return cores if cpu_time is None else max(1, min(cores, int(cpu_time.num_cpus)))


def shares_of(cores: list[int], num_places: int) -> list[Collection[int]]:
    """Returns the cores of each place: of its own if there are enough, else shared with others."""
    if num_places <= len(cores):
        return [cores[place::num_places] for place in range(num_places)]
    return [[cores[place % len(cores)]] for place in range(num_places)]
