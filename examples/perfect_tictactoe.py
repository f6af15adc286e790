"""A perfect player of tic-tac-toe, for `kubebeast eval --against examples.perfect_tictactoe:Perfect`."""

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class Perfect:
    """Plays any of the best moves."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def act(self, observation: Mapping[str, NDArray[np.generic]]) -> int:
        """`observation` holds "observation", [3, 3, 2]: the marks of this player and those of the other one."""
        own, other = (
            frozenset(np.flatnonzero(plane).tolist()) for plane in np.moveaxis(observation["observation"], 2, 0)
        )
        moves = [place for place in range(9) if place not in own | other]
        values = [-best_value(other, own | {place}) for place in moves]
        return int(
            self._random.choice([move for move, value in zip(moves, values, strict=True) if value == max(values)])
        )


@cache
def best_value(own: frozenset[int], other: frozenset[int]) -> int:
    """Returns the result, 1, 0 or -1, for the player with the turn if both play perfectly."""
    if any(other.issuperset(line) for line in LINES):
        return -1
    places = [place for place in range(9) if place not in own | other]
    return max((-best_value(other, own | {place}) for place in places), default=0)
