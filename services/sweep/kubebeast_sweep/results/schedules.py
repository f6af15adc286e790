"""Picture of population based training: scores and parameters of all members by env-steps, and the line of the best."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from kubebeast_sweep.plan import Plan
from kubebeast_sweep.population import GENERATION, MEMBER, PARENT
from kubebeast_sweep.results.picture import BLUE, GREY, dress
from kubebeast_sweep.space import is_number, to_setting
from kubebeast_sweep.trials.study import Study


def draw_schedules(plan: Plan, study: Study, path: Path, title: str) -> bool:
    """Writes the picture, and returns True; returns False if no interval is complete. Raises OSError."""
    trials = {each.number: each for each in study.trials() if each.state == TrialState.COMPLETE}
    best = study.best()
    if best is None:
        return False
    line = _line_to(best, trials)
    names = ["", *plan.space]
    figure = Figure(figsize=(12, 2.4 * len(names)), layout="constrained")
    all_axes = figure.subplots(len(names), 1, sharex=True)
    for name, axes in zip(names, all_axes, strict=True):
        _draw_members(axes, plan, list(trials.values()), name)
        ends = [(_end(plan, each), _value(plan, each, name)) for each in line]
        axes.plot(
            *zip(*ends, strict=True), color=BLUE, linewidth=2.5, marker="o", markersize=4, label="line of the best"
        )
        axes.set_ylabel(name or plan.score, color=GREY)
        distribution = plan.space.get(name)
        if isinstance(distribution, IntDistribution | FloatDistribution) and distribution.log:
            axes.set_yscale("log")
        if isinstance(distribution, CategoricalDistribution) and not _has_numbers(distribution):
            choices = [str(to_setting(choice)) for choice in distribution.choices]
            axes.set_yticks(range(len(choices)), choices)
        dress(axes)
    all_axes[0].legend(frameon=False, loc="lower right")
    all_axes[-1].xaxis.set_major_formatter(EngFormatter(sep=""))
    all_axes[-1].set_xlabel("env-steps", color=GREY)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    figure.savefig(path, dpi=130)
    return True


def _draw_members(axes: Axes, plan: Plan, trials: Sequence[FrozenTrial], name: str) -> None:
    """Draws a thin line for each member, which breaks off at a copy of another one."""
    members = sorted({each.user_attrs[MEMBER] for each in trials})
    for member in members:
        colour = colormaps["viridis"](member / max(1, len(members) - 1))
        intervals = sorted((each for each in trials if each.user_attrs[MEMBER] == member), key=lambda each: each.number)
        pieces: list[list[FrozenTrial]] = []
        for trial in intervals:
            is_copy = _parent(trial) != (pieces[-1][-1].number if pieces else None)
            pieces += [[trial]] if is_copy else []
            if not is_copy:
                pieces[-1].append(trial)
        for piece in pieces:
            points = [(_end(plan, each), _value(plan, each, name)) for each in piece]
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.9, alpha=0.6, marker=".", markersize=4)


def _line_to(trial: FrozenTrial, trials: Mapping[int, FrozenTrial]) -> list[FrozenTrial]:
    """Returns the trials whose steps a trial consists of, the first one first."""
    line = [trial]
    while (parent := _parent(line[0])) in trials:
        line.insert(0, trials[parent])
    return line


def _parent(trial: FrozenTrial) -> int:
    """Returns the trial that one goes on with; -1 for none."""
    run = str(trial.user_attrs.get(PARENT, ""))
    return int(run.partition("-")[0]) if run else -1


def _end(plan: Plan, trial: FrozenTrial) -> int:
    assert plan.population is not None
    return min(plan.total_steps, plan.population.interval * (int(trial.user_attrs[GENERATION]) + 1))


def _value(plan: Plan, trial: FrozenTrial, name: str) -> float:
    """Returns the place of a parameter on its axis, or of the score for ""."""
    value: Any = trial.params[name] if name else trial.value
    distribution = plan.space.get(name)
    if isinstance(distribution, CategoricalDistribution) and not _has_numbers(distribution):
        return distribution.choices.index(value)
    return float(value)


def _has_numbers(distribution: CategoricalDistribution) -> bool:
    return all(map(is_number, distribution.choices))
