"""A trial under way: runs with the same settings and different seeds, compared with other trials at each point."""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from optuna.trial import Trial

from kubebeast_sweep.plan import Plan
from kubebeast_sweep.population import GENERATION, MEMBER
from kubebeast_sweep.scores import NUM_POINTS, cut_episodes, last_score, missing_column, num_steps, point_of, score_at
from kubebeast_sweep.space import to_setting
from kubebeast_sweep.training_run import STOPPED, TrainingRun
from kubebeast_sweep.trials.study import REASON, Study

CPU_S = "cpu_s"
"""Attribute of a trial: CPU time of its runs that have ended, if it is known."""
SCORE = "score of seed {}"
"""Attribute of a trial: the score of a run that is done."""
STEPS = "steps"
"""Attribute of a trial that has ended: env-steps of its runs."""

logger = logging.getLogger(__name__)

Start = Callable[["ActiveTrial", int, Collection[int]], TrainingRun]
"""Function from a trial, a seed and cores to a run."""


class ActiveTrial:
    """The runs of one trial. Not thread-safe."""

    def __init__(self, trial: Trial, plan: Plan, study: Study, start: Start) -> None:
        self.number = trial.number
        self.is_over = False
        self.warning = ""
        """Reason for which its score may say little; known at its end."""
        self.num_failed_at_start = 0
        """Runs that ended with the exit status of settings that are refused."""
        self._trial, self._plan, self._study, self._start = trial, plan, study, start
        self.attributes: Mapping[str, Any] = trial.user_attrs
        self._seeds = (plan.seeds[0] + self.attributes[MEMBER],) if plan.population else plan.seeds
        columns = {seed: SCORE.format(seed) for seed in self._seeds}
        self._scores = {seed: self.attributes[name] for seed, name in columns.items() if name in self.attributes}
        self._waiting = [seed for seed in self._seeds if seed not in self._scores]
        self._runs: dict[int, TrainingRun] = {}
        self._reported = 0
        self.steps = self._count_steps()
        """Env-steps of the runs at the last look, over all seeds; of a population, in its interval."""
        self._end_if_done()

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: to_setting(value) for name, value in self._trial.params.items()}

    @property
    def runs(self) -> Sequence[TrainingRun]:
        return list(self._runs.values())

    @property
    def is_waiting(self) -> bool:
        """True if a run has yet to start."""
        return bool(self._waiting) and not self.is_over

    def start_next(self, cores: Collection[int]) -> None:
        """Starts the run of the next seed. Raises OSError, after which it still waits."""
        seed = self._waiting[0]
        self._runs[seed] = self._start(self, seed, cores)
        self._waiting.remove(seed)
        self.steps = max(self.steps, self._count_steps())
        logger.info("run %s begins: %s", self._runs[seed].folder.name, self.parameters)

    def look(self) -> None:
        """Notes runs that have ended, and reports the points that all runs have reached; may end the trial."""
        self.steps = max(self.steps, self._count_steps())
        for seed, run in list(self._runs.items()):
            status = run.poll()
            if status is not None:
                self._note_end(seed, run, status)
            if self.is_over:
                return
        self._report()

    def stop(self) -> None:
        """Ends all runs, and blocks until they have ended; they keep their checkpoints, and the trial its place.

        Raises OSError if their CPU time cannot be noted.
        """
        runs, self._runs = self.runs, {}
        for run in runs:
            run.stop()
        for run in runs:
            run.wait()
        for run in runs:
            self._note_cpu(run)

    def _count_steps(self) -> int:
        population = self._plan.population
        before = population.interval * self.attributes[GENERATION] if population else 0
        running = sum(max(0, num_steps(run.curve.recent()) - before) for run in self.runs)
        each = population.interval if population else self._plan.total_steps
        return len(self._scores) * each + running

    def _note_end(self, seed: int, run: TrainingRun, status: int) -> None:
        del self._runs[seed]
        self._note_cpu(run)
        if status == STOPPED:
            logger.warning("run %s was stopped by a signal, and goes on", run.folder.name)
            self._waiting.insert(0, seed)
        elif status:
            self.num_failed_at_start += status == 2
            self._fail(f"seed {seed}: exit status {status}: {run.last_lines()}")
        elif math.isnan(score := last_score(run.curve.newest(), self._plan)):
            reason = f"no number for the score {self._plan.score!r} in the last part of {run.folder}"
            self._fail(f"seed {seed}: {missing_column(run.curve.recent(), self._plan) or reason}")
        else:
            self._scores[seed] = score
            self._trial.set_user_attr(SCORE.format(seed), score)
            logger.info("run %s is done: %s %.4g", run.folder.name, self._plan.score, score)
            if self._plan.population:
                self.warning = cut_episodes(run.curve.recent(), self._plan.population.interval)
            self._end_if_done()

    def _end_if_done(self) -> None:
        if len(self._scores) == len(self._seeds):
            self._note_steps()
            self._study.complete(self._trial, math.fsum(self._scores.values()) / len(self._scores))
            self.is_over = True

    def _report(self) -> None:
        """Reports the mean over the runs under way and those that are done. A seed that waits does not count."""
        logs = [run.curve.recent() for run in self.runs]
        last = min((point_of(log, self._plan) for log in logs), default=0)
        for point in range(self._reported + 1, min(last, NUM_POINTS - 1) + 1):
            self._reported = point
            scores = [score_at(log, self._plan, point) for log in logs]
            if not all(map(math.isfinite, scores)):
                if point == NUM_POINTS // 5 and (warning := missing_column(logs[0], self._plan)):
                    logger.warning("%s", warning)
                continue
            if self._study.report(self._trial, math.fsum(scores) / len(scores), point):
                self.stop()
                self._note_steps()
                self._study.prune(self._trial)
                logger.info("trial %d is pruned at point %d of %d", self.number, point, NUM_POINTS)
                self.is_over = True
                return

    def _fail(self, reason: str) -> None:
        self.stop()
        self._note_steps()
        self._study.fail(self._trial, reason)
        self.is_over = True

    def _note_cpu(self, run: TrainingRun) -> None:
        if run.cpu_s is not None:
            self._trial.set_user_attr(CPU_S, self._trial.user_attrs.get(CPU_S, 0.0) + run.cpu_s)

    def _note_steps(self) -> None:
        self._trial.set_user_attr(STEPS, max(self.steps, self._count_steps()))

    @property
    def reason(self) -> str:
        """Reason of its failure; "" if it has not failed."""
        return str(self._trial.user_attrs.get(REASON, ""))
