"""The trials of a sweep in a file: a sweep that was killed goes on with those that it has begun.

Optuna chooses the parameters and keeps the trials (https://optuna.readthedocs.io).
"""

import itertools
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.draws import random_parameters
from kubebeast_sweep.plan import Plan, Population
from kubebeast_sweep.population import generation_of, next_intervals
from kubebeast_sweep.scores import NUM_POINTS
from kubebeast_sweep.space import Scalar, num_points, point
from kubebeast_sweep.trials.journal import Journal, ReadOnlyJournal

JOURNAL = "trials.journal"
REASON = "reason"
"""Attribute of a trial that failed."""
DUPLICATE = "its parameters were tried before"
UNBEGUN = "the sweep was killed before the trial had its parameters"
ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
_REDRAWS = 3
"""Draws of parameters that were tried before, after which an untried combination is taken at random."""


class Study:
    """The trials of a sweep. One process at a time opens it. Not thread-safe."""

    def __init__(
        self, plan: Plan, folder: Path, stop: threading.Event | None = None, *, is_read_only: bool = False
    ) -> None:
        """Opens the file in `folder`, or begins it.

        Args:
            plan: The file of the sweep.
            folder: Folder of the sweep.
            stop: Event that ends a wait for space on a full volume.
            is_read_only: Write nothing; another process may write the file.

        Raises:
            OSError: If the file cannot be read or written.
            ConfigError: If it is damaged or, if only read, without a trial.
        """
        self._plan = plan
        path = folder / JOURNAL
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # of constant_liar, which parallel trials need
            try:
                self._study = _open(plan, path, stop or threading.Event(), is_read_only=is_read_only)
            except ValueError as error:
                raise ConfigError(f"name = {folder.name!r}: {path} is damaged: {error}") from error
            self._study.sampler = _sampler(plan, len(self.trials()))

    def trials(self) -> list[FrozenTrial]:
        """Returns all trials that count, in order: those with parameters of their own."""
        every = self._study.get_trials(deepcopy=False)
        return [each for each in every if each.user_attrs.get(REASON) not in (DUPLICATE, UNBEGUN)]

    def begun(self) -> list[Trial]:
        """Returns the trials that a former process has begun and not ended, in order. Call it before `ask`."""
        found = []
        for frozen in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            trial = Trial(self._study, frozen._trial_id)  # Optuna has no public way to go on with a trial
            if set(frozen.params) == set(self._plan.space):
                found.append(trial)
            else:
                self.fail(trial, UNBEGUN)
        return found

    def ask(self) -> Trial | None:
        """Begins a trial; None if there are enough, or if the next ones depend on those under way."""
        return self._ask_new() if self._plan.population is None else self._ask_interval(self._plan.population)

    def _ask_interval(self, population: Population) -> Trial | None:
        for each in next_intervals(self._plan, population, self.trials()):
            self._study.enqueue_trial(dict(each.parameters), user_attrs=dict(each.attributes))
        return self._study.ask(self._plan.space) if self._is_waiting() else None

    def _ask_new(self) -> Trial | None:
        """Begins a trial with parameters that no other one has; None if there are enough."""
        for attempt in itertools.count():
            begun = [each for each in self.trials() if each.state != TrialState.WAITING]
            if len(begun) >= self._plan.num_trials:
                return None
            tried = {self._values(each.params) for each in begun}
            if not self._is_waiting() and (chosen := self._choose(tried, attempt)):
                self._study.enqueue_trial(chosen)
            trial = self._study.ask(self._plan.space)
            if self._values(trial.params) not in tried:
                return trial
            self.fail(trial, DUPLICATE)
        raise AssertionError

    def _choose(self, tried: Collection[tuple[Scalar, ...]], attempt: int) -> dict[str, Scalar] | None:
        """Returns the next parameters; None if Optuna chooses them."""
        space, seed = self._plan.space, self._plan.search_seed
        candidates: Iterator[dict[str, Scalar]]
        if self._plan.search == "grid":
            candidates = (point(space, index) for index in range(int(num_points(space))))
        elif attempt >= _REDRAWS:
            candidates = random_parameters(space, seed + len(tried))
        else:
            return self._draw() if self._plan.search == "random" else None
        return next(each for each in candidates if self._values(each) not in tried)

    def _values(self, parameters: Mapping[str, Scalar]) -> tuple[Scalar, ...]:
        return tuple(parameters.get(name) for name in self._plan.space)

    def _draw(self) -> dict[str, Scalar]:
        """Returns the parameters after those of all trials so far, whatever the number of processes that drew them."""
        count = sum(each.user_attrs.get(REASON) != UNBEGUN for each in self._study.get_trials(deepcopy=False))
        return next(itertools.islice(random_parameters(self._plan.space, self._plan.search_seed), count, None))

    def _is_waiting(self) -> bool:
        return any(each.state == TrialState.WAITING for each in self.trials())

    def report(self, trial: Trial, score: float, point: int) -> bool:
        """Records the score at a point of a trial, unless it is known. Returns True if the trial should be pruned."""
        if point in self._study.get_trials(deepcopy=False)[trial.number].intermediate_values:
            return False  # a former process has compared it
        trial.report(score, point)
        return trial.should_prune()

    def complete(self, trial: Trial, score: float) -> None:
        self._study.tell(trial, score)

    def prune(self, trial: Trial) -> None:
        self._study.tell(trial, state=TrialState.PRUNED)

    def fail(self, trial: Trial, reason: str) -> None:
        trial.set_user_attr(REASON, reason)
        self._study.tell(trial, state=TrialState.FAIL)

    def best(self) -> FrozenTrial | None:
        """Returns the complete trial with the best score, of the newest generation of a population; or None."""
        complete = [each for each in self.trials() if each.state == TrialState.COMPLETE]
        sign = 1 if self._plan.direction == "maximize" else -1
        return max(complete, key=lambda each: (generation_of(each), sign * (each.value or 0.0)), default=None)

    def importances(self) -> Mapping[str, float]:
        """Returns the share of each parameter in the differences of the scores (PED-ANOVA, arXiv:2304.10255).

        Empty with one parameter, or with fewer than four different scores.
        """
        values = {each.value for each in self.trials() if each.state == TrialState.COMPLETE}
        if len(values) < 4 or len(self._plan.space) < 2:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            return optuna.importance.get_param_importances(self._study, evaluator=evaluator)


def _open(plan: Plan, path: Path, stop: threading.Event, *, is_read_only: bool) -> optuna.Study:
    name, pruner = path.parent.name, _pruner(plan)
    if not is_read_only:
        storage = JournalStorage(Journal(path, stop))
        return optuna.create_study(
            study_name=name, storage=storage, pruner=pruner, direction=plan.direction, load_if_exists=True
        )
    try:
        return optuna.load_study(study_name=name, storage=JournalStorage(ReadOnlyJournal(path)), pruner=pruner)
    except KeyError as error:
        raise ConfigError(f"name = {name!r}: it has no trial yet") from error


def _sampler(plan: Plan, num_trials: int) -> BaseSampler:
    seed = plan.search_seed + num_trials  # a resumed sweep must not repeat its earlier draws
    if plan.search == "tpe":
        return TPESampler(seed=seed, constant_liar=True, n_startup_trials=max(4, min(10, plan.num_trials // 4)))
    return RandomSampler(seed=seed)


def _pruner(plan: Plan) -> BasePruner:
    if plan.pruner == "median":
        return MedianPruner(n_startup_trials=4, n_warmup_steps=NUM_POINTS // 5)
    if plan.pruner == "asha":
        return SuccessiveHalvingPruner(min_resource=NUM_POINTS // 5, reduction_factor=2)
    return NopPruner()
