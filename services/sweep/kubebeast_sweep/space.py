"""Parameters of a sweep, from the file of the user to distributions of Optuna."""

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeGuard

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from kubebeast_common.settings import ConfigError, require

Scalar = None | bool | int | float | str
Space = dict[str, BaseDistribution]
KINDS = ("range", "log")
MAX_POINTS = 100_000
"""Number of combinations above which a space counts as continuous."""


def read_space(parameters: object) -> Space:
    """Returns a distribution for each parameter. Raises ConfigError, which names the parameter.

    A list has the choices: numbers, texts, true and false, null, or lists of numbers. `range: [low, high]` is uniform,
    `log: [low, high]` uniform in the logarithm; both are of integers if low and high are, with an optional `step` for a
    range.
    """
    if not isinstance(parameters, Mapping) or not parameters:
        raise ConfigError(f"parameters = {parameters!r}: must be a mapping from settings to their values")
    return {str(name): _distribution(f"parameters.{name}", value) for name, value in parameters.items()}


def to_setting(value: Scalar) -> Any:
    """Returns the value of a setting from that of a parameter: lists are texts for Optuna."""
    return json.loads(value) if isinstance(value, str) and value.startswith("[") else value


def num_points(space: Space) -> float:
    """Returns the number of combinations; inf if one parameter is continuous or there are more than MAX_POINTS."""
    number = math.prod(len(points) if (points := points_of(each)) else math.inf for each in space.values())
    return number if number <= MAX_POINTS else math.inf


def points_of(distribution: BaseDistribution) -> list[Scalar]:
    """Returns all values of a distribution; empty if it is continuous."""
    match distribution:
        case CategoricalDistribution(choices=choices):
            return list(choices)
        case IntDistribution(log=False, low=low, high=high, step=step):
            return list(range(low, high + 1, step))
        case FloatDistribution(log=False, low=low, high=high, step=float() as step):
            return [low + index * step for index in range(round((high - low) / step) + 1)]
        case _:
            return []


def _distribution(name: str, value: object) -> BaseDistribution:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _choices(name, value)
    if not isinstance(value, Mapping) or len(set(value) & set(KINDS)) != 1 or set(value) - {*KINDS, "step"}:
        raise ConfigError(f"{name} = {value!r}: must be a list of choices, range: [low, high] or log: [low, high]")
    kind = "log" if "log" in value else "range"
    low, high = _bounds(f"{name}.{kind}", value[kind])
    step = value.get("step")
    reason = "must be a positive number, of a range"
    require(step is None or (kind == "range" and is_number(step) and step > 0), f"{name}.step", step, reason)
    require(kind == "range" or low > 0, f"{name}.log", value[kind], "must be positive")
    if isinstance(low, int) and isinstance(high, int) and isinstance(step, int | None):
        return IntDistribution(low, _last(low, high, step or 1), log=kind == "log", step=step or 1)
    return FloatDistribution(low, _last(low, high, step) if step else high, log=kind == "log", step=step)


def _choices(name: str, values: Sequence[Any]) -> CategoricalDistribution:
    require(len(values) > 0, name, values, "must have at least one choice")
    for value in values:
        reason = "a choice must be a number, a text, true, false, null, or a list of them"
        is_plain = all(isinstance(each, Scalar) for each in (value if isinstance(value, list) else [value]))
        require(is_plain, name, value, reason)
        require(not (isinstance(value, str) and value.startswith("[")), name, value, "must not begin with [")
        require([*values].count(value) == 1, name, value, "is given twice")
    return CategoricalDistribution([json.dumps(each) if isinstance(each, list) else each for each in values])


def _bounds(name: str, value: object) -> tuple[Any, Any]:
    match value:
        case [low, high] if is_number(low) and is_number(high) and low < high:
            return low, high
        case _:
            raise ConfigError(f"{name} = {value!r}: must be [low, high], two finite numbers, low below high")


def is_number(value: object) -> TypeGuard[int | float]:
    """Returns True for a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _last(low: Any, high: Any, step: Any) -> Any:
    """Returns the last value that whole steps from `low` reach; as decimal numbers, in which 0.3 three times is 0.9."""
    first, width = Decimal(str(low)), Decimal(str(step))
    last = first + (Decimal(str(high)) - first) // width * width
    return int(last) if isinstance(low, int) and isinstance(step, int) else float(last)
