"""Random parameters of a space."""

import math
import random
from collections.abc import Iterator

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from kubebeast_sweep.space import Scalar, Space


def random_parameters(space: Space, seed: int) -> Iterator[dict[str, Scalar]]:
    """Yields parameters without end, the same ones for a seed in every process: a resumed sweep goes on with them.

    Uniform over the choices and in ranges, in the logarithm for those of that kind.
    """
    draw = random.Random(seed)
    while True:
        yield {name: drawn(each, draw) for name, each in space.items()}


def within(distribution: IntDistribution | FloatDistribution, value: float) -> Scalar:
    """Returns the nearest value of a distribution."""
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None:
        value = low + round((value - low) / step) * step
    value = min(max(value, low), high)
    return round(value) if isinstance(distribution, IntDistribution) else value


def drawn(distribution: BaseDistribution, draw: random.Random) -> Scalar:
    """Returns a random value of a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return draw.choice(distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None and not distribution.log:
        return within(distribution, low + step * draw.randrange(round((high - low) / step) + 1))
    if distribution.log:
        return within(distribution, math.exp(draw.uniform(math.log(low), math.log(high))))
    return within(distribution, draw.uniform(low, high))
