"""The file of a sweep: which settings are searched, how, and with which runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from kubebeast_common.settings import ConfigError, read_typed_file, require
from kubebeast_runs import resuming
from kubebeast_sweep.space import Space, is_number, num_points, read_space

Search = Literal["tpe", "random", "grid", "pbt"]
Pruner = Literal["median", "asha", "none"]
Direction = Literal["maximize", "minimize"]
Command = Literal["mono", "train", "learner"]
OWN = ("xpid", "savedir", "seed", "progress", "total_steps")
"""Settings that the sweep gives to each run, or that must be the same for all runs."""
FIXED = ("command", "recipe", "settings", "parameters", "seeds", "population", "score", "direction", "window")
"""Entries that a sweep keeps when it is resumed: others may change from one start to the next."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Population:
    """Members of population based training, and their intervals."""

    members: int
    interval: int
    """Env-steps after which members are compared."""
    quantile: float
    """Share of the members that copy others, and of those that are copied."""
    resample: float
    """Probability with which a member that copies another draws a parameter anew, and does not perturb it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A checked file."""

    command: Command = "mono"
    recipe: str = "auto"
    """Recipe of all runs."""
    settings: Mapping[str, Any]
    """Settings of all runs, beyond those of the recipe."""
    space: Space
    seeds: tuple[int, ...] = (1,)
    """Seeds with which each setting is trained; its score is the mean."""
    search: Search = "tpe"
    num_trials: int
    population: Population | None = None
    """Members of population based training, in which a trial is one interval of one member."""
    pruner: Pruner = "median"
    score: str = "return"
    """A column of logs.csv, or "return" for the mean return of episodes."""
    direction: Direction = "maximize"
    window: float = 0.2
    """Share of the steps of a run, or of an interval, that a score is the mean over."""
    goal: float | None = None
    """Score at which the sweep ends."""
    search_seed: int = 1
    fixed: Mapping[str, Any]
    """The entries FIXED as plain values."""

    @property
    def total_steps(self) -> int:
        return int(self.settings["total_steps"])

    @property
    def window_steps(self) -> float:
        """Env-steps before the one at which a score is taken that it is the mean over."""
        return self.window * (self.population.interval if self.population else self.total_steps)

    @property
    def num_generations(self) -> int:
        """Intervals of each member; 0 without a population."""
        return math.ceil(self.total_steps / self.population.interval) if self.population else 0

    def reaches_goal(self, score: float) -> bool:
        if self.goal is None:
            return False
        return score >= self.goal if self.direction == "maximize" else score <= self.goal


NAMES = {
    *("command", "recipe", "settings", "parameters", "seeds", "search", "num_trials", "population", "pruner"),
    *("score", "direction", "window", "goal", "search_seed"),
}
_PLAIN = ("command", "recipe", "pruner", "score", "direction", "window", "goal")
_CHOICES = {"command": Command, "search": Search, "pruner": Pruner, "direction": Direction}


def read_plan(path: Path) -> Plan:
    """Reads and checks a file. Raises ConfigError, which names the entry and its value."""
    given = read_typed_file("file", path, NAMES)
    for name, choices in _CHOICES.items():
        allowed = get_args(choices)
        require(given.get(name, allowed[0]) in allowed, name, given.get(name), f"must be {', '.join(allowed)}")
    recipe = given.get("recipe", "auto")
    require(isinstance(recipe, str) and recipe != "", "recipe", recipe, "must be the name of a recipe, or auto")
    settings, space = _settings(given.get("settings")), read_space(given.get("parameters"))
    for name in space:
        require(name not in OWN, "parameters", name, "is the same for all runs of a sweep, or given by it")
        require(name not in settings, "parameters", name, "is in settings as well")
    _check_scores(given)
    search, population = given.get("search", "tpe"), _population(given)
    for name in space if population else ():
        require(name not in resuming.FIXED, "parameters", name, "cannot change in a run, as with search: pbt")
    plan = {name: given[name] for name in _PLAIN if name in given}
    if population:
        plan["pruner"] = "none"
    return Plan(
        **plan,
        settings=settings,
        space=space,
        seeds=_seeds(given, only_one=population is not None),
        search=search,
        search_seed=_whole_number("search_seed", given.get("search_seed", 1), 0),
        num_trials=_num_trials(given, num_points(space), population, settings["total_steps"]),
        population=population,
        fixed=_fixed(given),
    )


def require_same(plan: Plan, saved: Path) -> None:
    """Raises ConfigError if the file `saved`, which the sweep was started with, differs in an entry of FIXED."""
    before = _fixed(read_typed_file("file", saved, NAMES))
    for name in FIXED:
        if before.get(name) != plan.fixed.get(name):
            raise ConfigError(
                f"{name} = {plan.fixed.get(name)!r}: the sweep was started with {before.get(name)!r}, which it keeps; "
                "give it another --name, or learner.xpid of the chart"
            )


def _fixed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries FIXED, without settings for files, logs and monitoring."""
    fixed = {name: given[name] for name in FIXED if name in given}
    if isinstance(settings := fixed.get("settings"), Mapping):
        fixed["settings"] = {name: value for name, value in settings.items() if name not in resuming.WATCHING}
    return fixed


def _check_scores(given: Mapping[str, Any]) -> None:
    score, window, goal = given.get("score", "return"), given.get("window", 0.2), given.get("goal")
    require(isinstance(score, str) and score != "", "score", score, "must be return or a column of logs.csv")
    require(is_number(window) and 0 < window <= 1, "window", window, "must be above 0, at most 1")
    require(goal is None or is_number(goal), "goal", goal, "must be a number")


def _seeds(given: Mapping[str, Any], *, only_one: bool) -> tuple[int, ...]:
    seeds = given.get("seeds", [1])
    require(isinstance(seeds, list) and len(seeds) > 0, "seeds", seeds, "must be a list of whole numbers")
    for seed in seeds:
        _whole_number("seeds", seed, 0)
    require(len(set(seeds)) == len(seeds), "seeds", seeds, "must be different")
    require(not only_one or len(seeds) == 1, "seeds", seeds, "must be one with search: pbt, that of the first member")
    return tuple(seeds)


def _population(given: Mapping[str, Any]) -> Population | None:
    entries, is_wanted = given.get("population"), given.get("search") == "pbt"
    if not is_wanted:
        require(entries is None, "population", entries, "is for search: pbt")
        return None
    names = {field.name for field in fields(Population)}
    if not isinstance(entries, Mapping) or not {"members", "interval"} <= set(entries) <= names:
        raise ConfigError(
            f"population = {entries!r}: must be a mapping with members, interval and perhaps quantile, resample"
        )
    members = _whole_number("population.members", entries["members"], 4)
    interval = _whole_number("population.interval", entries["interval"], 1)
    quantile = entries.get("quantile", 0.25)
    require(is_number(quantile) and 0 < quantile <= 0.5, "quantile", quantile, "must be above 0, at most 0.5")
    resample = entries.get("resample", 0.25)
    require(is_number(resample) and 0 <= resample <= 1, "resample", resample, "must be from 0 to 1")
    return Population(members=members, interval=interval, quantile=quantile, resample=resample)


def _num_trials(given: Mapping[str, Any], points: float, population: Population | None, total_steps: int) -> int:
    search, number = given.get("search", "tpe"), given.get("num_trials")
    require(search != "grid" or points < math.inf, "search", search, "needs choices, or ranges with steps")
    if population is not None:
        require(number is None, "num_trials", number, "follows from the population")
        return population.members * math.ceil(total_steps / population.interval)
    return int(min(points if search == "grid" and number is None else _whole_number("num_trials", number, 1), points))


def _settings(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"settings = {given!r}: must be a mapping with env and total_steps")
    settings = {str(name): value for name, value in given.items()}
    for name in set(OWN) - {"total_steps"}:
        require(name not in settings, "settings", name, "is given to each run by the sweep")
    _whole_number("settings.total_steps", settings.get("total_steps"), 1)
    return settings


def _whole_number(name: str, value: object, least: int) -> int:
    """Returns the value. Raises ConfigError unless it is a whole number, at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} = {value!r}: must be a whole number, at least {least}")
    return value
