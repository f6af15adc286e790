"""Population based training (Jaderberg et al. 2017, arXiv:1711.09846): settings that change while members train.

All members train for an interval. Then each of the worst copies one of the best (exploit: truncation selection, section
4.1) and changes its parameters (explore: perturbation and resampling, section 4.1), while the others go on as they are.
A trial is one interval of one member.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from kubebeast_sweep.draws import drawn, random_parameters, within
from kubebeast_sweep.plan import Plan, Population
from kubebeast_sweep.space import Scalar, Space
from kubebeast_sweep.training_run import run_name

MEMBER, GENERATION, PARENT = "member", "generation", "parent"
"""Attributes of a trial: the number of its member, that of its interval, and the run that it goes on with."""
FACTORS = (0.8, 1.2)
"""Factors by which a number is perturbed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The next interval of a member."""

    parameters: Mapping[str, Scalar]
    attributes: Mapping[str, int | str]


def seed_of(plan: Plan, trial: FrozenTrial) -> int:
    """Returns the seed of the member of a trial."""
    return plan.seeds[0] + _of(trial, MEMBER)


def generation_of(trial: FrozenTrial) -> int:
    """Returns the number of the interval of a trial; 0 outside of populations."""
    return int(trial.user_attrs.get(GENERATION, 0))


def next_intervals(plan: Plan, population: Population, trials: Sequence[FrozenTrial]) -> list[Interval]:
    """Returns the intervals that can begin and have not begun; none while a generation trains, or at the end.

    They follow from the trials that have ended and the seed of the search, so that a sweep that was killed in between
    gets those that are missing.
    """
    generation = max((_of(each, GENERATION) for each in trials), default=0)
    here = [each for each in trials if _of(each, GENERATION) == generation]
    is_whole = len(here) == population.members
    if is_whole and all(each.state.is_finished() for each in here):
        before, generation, here = here, generation + 1, []
    else:
        before = [each for each in trials if _of(each, GENERATION) == generation - 1]
    if generation >= plan.num_generations:
        return []
    begun = {_of(each, MEMBER) for each in here}
    wanted = _first(plan, population) if generation == 0 else _following(plan, population, before, generation)
    return [each for each in wanted if each.attributes[MEMBER] not in begun]


def _first(plan: Plan, population: Population) -> list[Interval]:
    drawn = zip(range(population.members), random_parameters(plan.space, plan.search_seed), strict=False)
    return [Interval(parameters, {MEMBER: member, GENERATION: 0}) for member, parameters in drawn]


def _following(plan: Plan, population: Population, before: Sequence[FrozenTrial], generation: int) -> list[Interval]:
    """Returns an interval for each member after those of the generation before."""
    draw = random.Random(f"{plan.search_seed} {generation}")
    ranked = sorted(before, key=lambda each: _rank(plan, each))
    num_replaced = max(1, math.floor(population.quantile * len(ranked)))
    num_failed = sum(each.state != TrialState.COMPLETE for each in ranked)
    best = [each for each in ranked[::-1][:num_replaced] if each.state == TrialState.COMPLETE]
    worst = {each.number for each in ranked[: max(num_replaced, num_failed)]}
    found = []
    for trial in sorted(before, key=lambda each: _of(each, MEMBER)):
        parent, parameters = trial, dict(trial.params)
        if trial.number in worst and best:
            parent = draw.choice(best)
            parameters = explored(plan.space, parent.params, population.resample, draw)
        run = run_name(parent.number, seed_of(plan, parent))
        found.append(Interval(parameters, {MEMBER: _of(trial, MEMBER), GENERATION: generation, PARENT: run}))
    return found


def explored(space: Space, parameters: Mapping[str, Any], resample: float, draw: random.Random) -> dict[str, Scalar]:
    """Changes each parameter: draws it anew with the probability `resample`, or else multiplies a number by one of
    FACTORS, within its range, or takes a choice next to it in the list.
    """
    return {
        name: drawn(each, draw) if draw.random() < resample else _perturbed(each, parameters[name], draw)
        for name, each in space.items()
    }


def _perturbed(distribution: BaseDistribution, value: Any, draw: random.Random) -> Scalar:
    if isinstance(distribution, CategoricalDistribution):
        place = distribution.choices.index(value) + draw.choice((-1, 1))
        return distribution.choices[min(max(place, 0), len(distribution.choices) - 1)]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    return within(distribution, value * draw.choice(FACTORS))


def _rank(plan: Plan, trial: FrozenTrial) -> tuple[bool, float, int]:
    """Returns a key that sorts the worst trial first; failed ones are worse than all others."""
    is_complete = trial.state == TrialState.COMPLETE
    score = (trial.value or 0.0) if plan.direction == "maximize" else -(trial.value or 0.0)
    return is_complete, score if is_complete else 0.0, -trial.number


def _of(trial: FrozenTrial, attribute: str) -> int:
    return int(trial.user_attrs[attribute])
