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
MAX_STEPS = 10**9
"""Largest number of steps in a range."""
_MAX_WHOLE = 2**53
"""Largest whole number that float64 has exactly, as Optuna draws with it."""


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
    """Returns the number of combinations; inf if a parameter is continuous."""
    return math.prod(num_values(each) for each in space.values())


def point(space: Space, index: int) -> dict[str, Scalar]:
    """Returns the combination with an index below num_points; the last parameter changes with each index."""
    found = {}
    for name, distribution in reversed(space.items()):
        index, place = divmod(index, int(num_values(distribution)))
        found[name] = _value_at(distribution, place)
    return {name: found[name] for name in space}


def num_values(distribution: BaseDistribution) -> float:
    """Returns the number of values of a distribution; inf if it is continuous."""
    match distribution:
        case CategoricalDistribution(choices=choices):
            return len(choices)
        case IntDistribution(low=low, high=high, step=step):
            return (high - low) // step + 1
        case FloatDistribution(low=low, high=high, step=float() as step):
            return round((high - low) / step) + 1
        case _:
            return math.inf


def _value_at(distribution: BaseDistribution, place: int) -> Scalar:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[place]
    assert isinstance(distribution, IntDistribution | FloatDistribution) and distribution.step is not None
    return min(distribution.low + place * distribution.step, distribution.high)  # 0.2 + 0.1 is above 0.3


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
    reason = f"must be at most high - low, and at least that by {MAX_STEPS:,}"
    require(step is None or 1 <= _num_steps(low, high, step) <= MAX_STEPS, f"{name}.step", step, reason)
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
            raise ConfigError(
                f"{name} = {value!r}: must be [low, high], two finite numbers, low below high, whole ones up to 2^53"
            )


def is_number(value: object) -> TypeGuard[int | float]:
    """Returns True for a finite number, or a whole one of at most 2^53."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= _MAX_WHOLE
    return isinstance(value, float) and math.isfinite(value)


def _last(low: Any, high: Any, step: Any) -> Any:
    """Returns the last value that whole steps from `low` reach."""
    last = Decimal(str(low)) + _num_steps(low, high, step) // 1 * Decimal(str(step))
    return int(last) if isinstance(low, int) and isinstance(step, int) else float(last)


def _num_steps(low: Any, high: Any, step: Any) -> Decimal:
    """Returns the number of steps, in decimal numbers: in binary ones, 0.9 has fewer than three steps of 0.3."""
    return (Decimal(str(high)) - Decimal(str(low))) / Decimal(str(step))
