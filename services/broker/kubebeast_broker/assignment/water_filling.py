"""Weighted max-min fair division, by progressive filling.

Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2 (https://web.mit.edu/dimitrib/www/datanets.html).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Vessel(NamedTuple):
    """A receiver of a part."""

    weight: float
    """Above 0."""
    limit: float
    """Most that it can use; math.inf for any amount."""
    content: float = 0.0
    """Amount that it has already."""


def fill(amount: float, vessels: Sequence[Vessel]) -> list[float]:
    """Returns the contents after `amount`, at least 0, is added, which sum up to that and the contents before.

    All vessels with the same weight rise to the same level, and one with twice the weight to twice the level. A full
    vessel leaves its part to others, and one above the level keeps its content. If all are full, what is left is added
    regardless of the limits.
    """
    if not vessels:
        return []
    target = amount + sum(vessel.content for vessel in vessels)
    room = sum(max(0.0, vessel.limit - vessel.content) for vessel in vessels)
    if room < amount:
        full = [max(vessel.limit, vessel.content) for vessel in vessels]
        vessels = [Vessel(vessel.weight, math.inf, height) for vessel, height in zip(vessels, full, strict=True)]
    marks = sorted({height / vessel.weight for vessel in vessels for height in (vessel.content, vessel.limit)})
    low = 0.0
    for high in marks:
        if not math.isfinite(high) or sum(_heights(vessels, high)) >= target:
            break
        low = high
    rising = sum(each.weight for each in vessels if each.content / each.weight <= low < each.limit / each.weight)
    level = low + (target - sum(_heights(vessels, low))) / rising if rising else low
    return _heights(vessels, level)


def _heights(vessels: Sequence[Vessel], level: float) -> list[float]:
    return [max(vessel.content, min(vessel.limit, level * vessel.weight)) for vessel in vessels]
