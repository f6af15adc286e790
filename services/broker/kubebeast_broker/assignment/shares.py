"""Shares of learners in a fleet, as fractions of streams."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from kubebeast_broker.assignment.water_filling import Vessel, fill


class Claim(NamedTuple):
    """Claim of a learner."""

    weight: float
    """Above 0."""
    usable: int
    """Number of streams that it could use; 0: any number."""


def shares_of(claims: Mapping[str, Claim], groups: Mapping[frozenset[str], int]) -> dict[str, float]:
    """Returns the share of each learner, which sum up to the number of streams that any learner accepts.

    `groups` has the number of streams by the learners that accept them, which must all have claims. Groups are divided
    one after the other, those with the smallest choice first. The result is max-min fair if of any two groups that have
    a learner in common one contains the other, as with environments that fit either every run or only some.
    """
    shares = dict.fromkeys(claims, 0.0)
    for group in sorted(groups, key=lambda group: (len(group), *sorted(group))):
        members = sorted(group)
        vessels = [
            Vessel(claims[name].weight, claims[name].usable or math.inf, content=shares[name]) for name in members
        ]
        shares.update(zip(members, fill(groups[group], vessels), strict=True))
    return shares
